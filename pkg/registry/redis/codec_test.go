package redis

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/registrytest"
	"github.com/skalds-go/skalds/pkg/task"
)

// values returns the answer to readNode after a node was written.
func values(n *registry.Node) []string {
	written := map[string]string{"tasks": strconv.Itoa(len(n.Tasks))}
	pairs := appendNode(nil, n)
	for i := 0; i < len(pairs); i += 2 {
		switch value := pairs[i+1].(type) {
		case string:
			written[pairs[i].(string)] = value
		case []byte:
			written[pairs[i].(string)] = string(value)
		}
	}
	list := make([]string, len(columns))
	for i, name := range columns {
		list[i] = written[name.(string)]
	}
	return list
}

func decodeNode(id string, values []string) (n registry.Node, tasks int, found bool, err error) {
	tasks, found, err = newDecoder().node(&n, id, values)
	return n, tasks, found, err
}

func TestNodeReadsBack(t *testing.T) {
	t.Parallel()
	nodes := rapid.Make[registry.Node]()
	rapid.Check(t, func(t *rapid.T) {
		n := nodes.Draw(t, "node")
		n.ID, n.Tasks = "n1", nil
		n.Incarnation += "i"
		n.CPU = float64(rapid.IntRange(0, 9999).Draw(t, "cpu")) / 100 // it is kept with six digits
		got, _, found, err := decodeNode("n1", values(&n))
		if err != nil || !found || !reflect.DeepEqual(got, n) {
			t.Fatalf("got %+v, found %v, error %v\nwant %+v", got, found, err, n)
		}
	})
}

func TestDecodeNode(t *testing.T) {
	t.Parallel()
	if _, _, found, err := decodeNode("n1", make([]string, len(columns))); found || err != nil {
		t.Errorf("no hash: found %v, error %v", found, err)
	}
	older := make([]string, len(columns))
	older[0], older[1] = "i", "5"
	if n, tasks, found, err := decodeNode("n1", older); err != nil || !found || tasks != 0 || !reflect.DeepEqual(n, registry.Node{ID: "n1", Incarnation: "i", Counter: 5}) {
		t.Errorf("only what makes a node: %+v, %d, %v, %v", n, tasks, found, err)
	}
	for _, cpu := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		odd := registrytest.Example("n1", "i", 1)
		odd.CPU = cpu
		if n, _, _, err := decodeNode("n1", values(odd)); err != nil || n.CPU != 0 {
			t.Errorf("cpu %v reads as %v, error %v", cpu, n.CPU, err)
		}
	}
}

// A count under its name before 0.1 is read, unless there is one under its present name.
func TestOldNamesAreRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hash map[string]string
		want int64
	}{
		"old":     {map[string]string{"turn": "5"}, 5},
		"present": {map[string]string{"roundRobinCount": "6"}, 6},
		"both":    {map[string]string{"roundRobinCount": "0", "turn": "5"}, 0},
	} {
		tc.hash["incarnation"], tc.hash["counter"], tc.hash["mode"] = "i", "1", "node"
		list := make([]string, len(columns))
		for i, column := range columns {
			list[i] = tc.hash[column.(string)]
		}
		if n, _, _, err := decodeNode("n1", list); err != nil || n.RoundRobinCount != tc.want || n.Mode != "node" {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
}

// Nodes with the same classes and labels are decoded once and share nothing.
func TestDecoderSharesNothing(t *testing.T) {
	t.Parallel()
	d := newDecoder()
	want := registry.Node{}
	for i := range 3 {
		var n registry.Node
		_, _, err := d.node(&n, "n1", values(registrytest.Example("n1", "i", 1)))
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && !reflect.DeepEqual(n, want) {
			t.Fatalf("an earlier node's reader changed a later one: %+v", n)
		}
		want = n
		want.Classes, want.Labels = slices.Clone(n.Classes), maps.Clone(n.Labels)
		want.CapacityByClass, want.RunningByClass = maps.Clone(n.CapacityByClass), maps.Clone(n.RunningByClass)
		n.Classes[0], n.Labels["zone"] = "spoilt", "spoilt"
		n.CapacityByClass["resize"], n.RunningByClass["resize"] = 99, 99
	}
}

func TestListDigest(t *testing.T) {
	t.Parallel()
	base := []registry.HeldTask{{ID: "a", Attempt: 1, ClaimID: "c", State: task.ReportStarted}, {ID: "b", Attempt: 2, ClaimID: "d"}}
	want := listDigest(base)
	turned := slices.Clone(base)
	slices.Reverse(turned)
	if listDigest(turned) != want {
		t.Error("the order changes the digest")
	}
	changes := map[string]func(l []registry.HeldTask){
		"id":      func(l []registry.HeldTask) { l[0].ID = "x" },
		"attempt": func(l []registry.HeldTask) { l[0].Attempt++ },
		"claim":   func(l []registry.HeldTask) { l[0].ClaimID = "x" },
		"state":   func(l []registry.HeldTask) { l[0].State = task.ReportFinished },
		"swapped": func(l []registry.HeldTask) { l[0].ClaimID, l[1].ClaimID = l[1].ClaimID, l[0].ClaimID },
		"twice":   func(l []registry.HeldTask) { l[1] = l[0] },
	}
	for name, change := range changes {
		list := slices.Clone(base)
		change(list)
		if listDigest(list) == want {
			t.Errorf("%s does not change the digest", name)
		}
	}
	if listDigest(base[:1]) == want || listDigest(nil) == want {
		t.Error("a shorter list has the same digest")
	}
}

func FuzzDecodeNode(f *testing.F) {
	f.Add(0, "", "x")
	f.Add(4, `["a"]`, `{"k":"v"}`)
	f.Add(1, "-9223372036854775809", "1e999")
	f.Add(16, "NaN", "\x00")
	f.Fuzz(func(t *testing.T, at int, a, b string) {
		list := values(registrytest.Example("n1", "i", 1))
		at = int(uint(at) % uint(len(list)))
		list[at], list[(at+1)%len(list)] = a, b
		n, _, found, err := decodeNode("n1", list)
		if err != nil {
			if !strings.Contains(err.Error(), "field") && !strings.Contains(err.Error(), "missing") {
				t.Errorf("the error does not say where: %v", err)
			}
			return
		}
		if !found || n.Incarnation == "" || math.IsNaN(n.CPU) || math.IsInf(n.CPU, 0) {
			t.Errorf("decoded %+v, found %v", n, found)
		}
	})
}

func FuzzDecodeTasks(f *testing.F) {
	f.Add("t1", `{"attempt":1,"claimId":"c","state":"started"}`)
	f.Add("", "{}")
	f.Add("x", `{"attempt":1e99}`)
	f.Fuzz(func(t *testing.T, id, value string) {
		list, err := decodeTasks(map[string]string{id: value})
		if err == nil && (len(list) != 1 || list[0].ID != id) {
			t.Errorf("decoded %v", list)
		}
	})
}

func BenchmarkDecodeNode(b *testing.B) {
	list := values(registrytest.Example("n1", "i", 1))
	d := newDecoder()
	b.ReportAllocs()
	var n registry.Node // of a snapshot's slice
	for b.Loop() {
		if _, found, err := d.node(&n, "n1", list); !found || err != nil {
			b.Fatal(found, err)
		}
	}
}
