package ingest

import (
	"reflect"
	"testing"

	"github.com/skalds-go/skalds/events"
)

// All that a heartbeat over task.status says is taken in as if the registry had said it.
func TestEveryFieldOfABeatIsTakenIn(t *testing.T) {
	t.Parallel()
	var b events.Heartbeat
	v := reflect.ValueOf(&b).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Int, reflect.Int64:
			f.SetInt(1)
		case reflect.Float64:
			f.SetFloat(1)
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{"x"}))
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
		default:
			t.Fatalf("%s is a %s: teach this test to set it", v.Type().Field(i).Name, f.Kind())
		}
	}
	n := reflect.ValueOf(*nodeOf(&events.Status{Node: "n", Incarnation: "i", Heartbeat: &b}))
	for i := range n.NumField() {
		switch name := n.Type().Field(i).Name; name {
		case "Replaces", "Crashed", "Tasks": // only the registry is told these
		default:
			if n.Field(i).IsZero() {
				t.Errorf("%s is not taken in", name)
			}
		}
	}
}
