package mongo

import (
	"reflect"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/skalds-go/skalds/pkg/task"
)

// translate is a change as a filter and an update: the same as task.Change.Apply, for the server. What is cleared is
// removed from the document, so that null, empty and missing stay one.
func translate(c *task.Change) (filter, update bson.Raw) {
	return changeFilter(c), changeUpdate(c)
}

// changeFilter is task.Change.Matches. A document that has never been claimed lacks attempt and claim id.
func changeFilter(c *task.Change) bson.Raw {
	dst, start := begin(make([]byte, 0, 192))
	dst = appendString(dst, "id", c.ID)
	dst = appendStatuses(dst, c.From)
	dst = match(dst, "attempt", c.Attempt, bsoncore.AppendInt64Element)
	dst = match(dst, "claimId", c.ClaimID, appendString)
	if c.IfDesired != nil {
		dst = match(dst, "desired", string(*c.IfDesired), appendString)
	}
	if c.AsOf != 0 {
		dst = bsoncore.AppendInt64Element(dst, "assignedDateTime", c.AsOf)
	}
	if c.Update != nil {
		dst = match(dst, "attachmentsVersion", c.Update.From, bsoncore.AppendInt64Element)
	}
	return end(dst, start)
}

// match matches a value. Where that is empty or 0, null and missing match, too.
func match[V comparable](dst []byte, key string, value V, add func([]byte, string, V) []byte) []byte {
	if value != *new(V) {
		return add(dst, key, value)
	}
	dst, in := beginIn(dst, bson.TypeEmbeddedDocument, key)
	dst, list := beginIn(dst, bson.TypeArray, "$in")
	return end(end(bsoncore.AppendNullElement(add(dst, "0", value), "1"), list), in)
}

func appendStatuses(dst []byte, set task.Statuses) []byte {
	list := set.List()
	if len(list) == 1 {
		return appendString(dst, "lifecycleStatus", string(list[0]))
	}
	dst, in := beginIn(dst, bson.TypeEmbeddedDocument, "lifecycleStatus")
	dst, array := beginIn(dst, bson.TypeArray, "$in")
	for i, s := range list {
		dst = appendString(dst, position(i), string(s))
	}
	return end(end(dst, array), in)
}

// probes are two tasks that differ in every field. They show what a change sets: the fields in which they do not differ
// any more.
var probes = func() (two [2]task.Task) {
	for i := range two {
		v := reflect.ValueOf(&two[i]).Elem()
		for _, fv := range v.Fields() {
			switch fv.Kind() {
			case reflect.String:
				fv.SetString(strconv.Itoa(i))
			case reflect.Bool:
				fv.SetBool(i == 1)
			case reflect.Int, reflect.Int64:
				fv.SetInt(int64(i))
			case reflect.Pointer:
				fv.Set(reflect.New(fv.Type().Elem()))
			case reflect.Slice:
				fv.Set(reflect.MakeSlice(fv.Type(), 1, 1))
			case reflect.Map:
				fv.Set(reflect.MakeMap(fv.Type()))
			default:
				panic("mongo store: no probe for " + fv.Type().String())
			}
		}
	}
	return two
}()

// alike reports whether two fields are the same; what refers to memory, if it is the same memory.
func alike(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.String:
		return a.String() == b.String()
	case reflect.Int, reflect.Int64:
		return a.Int() == b.Int()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	default:
		return a.UnsafePointer() == b.UnsafePointer()
	}
}

// changeUpdate is what task.Change.Write sets and clears, and the run that it appends to the history.
func changeUpdate(c *task.Change) bson.Raw {
	two := probes
	c.Write(&two[0])
	c.Write(&two[1])
	a, b := reflect.ValueOf(&two[0]).Elem(), reflect.ValueOf(&two[1]).Elem()
	set, unset := make([]byte, 0, 256+len(c.Result)), make([]byte, 0, 128)
	for _, f := range documents[a.Type()].list {
		fv := a.Field(f.index)
		switch {
		case !alike(fv, b.Field(f.index)):
		case f.omit && empty(fv) && f.name != "notBefore": // which is found by its 0; see encode
			unset = appendString(unset, f.name, "")
		default:
			set = appendValue(set, f.name, fv)
		}
	}
	dst, start := begin(make([]byte, 0, 64+len(set)+len(unset)))
	dst, in := beginIn(dst, bson.TypeEmbeddedDocument, "$set")
	dst = end(append(dst, set...), in)
	if len(unset) > 0 {
		dst, in = beginIn(dst, bson.TypeEmbeddedDocument, "$unset")
		dst = end(append(dst, unset...), in)
	}
	if c.Run != nil {
		dst = appendRun(dst, c.Run)
	}
	return end(dst, start)
}

// appendRun is the operator that appends one run to the history and keeps the last of them.
func appendRun(dst []byte, r *task.Run) []byte {
	dst, push := beginIn(dst, bson.TypeEmbeddedDocument, "$push")
	dst, field := beginIn(dst, bson.TypeEmbeddedDocument, "attempts")
	dst, each := beginIn(dst, bson.TypeArray, "$each")
	dst = end(appendValue(dst, "0", reflect.ValueOf(r)), each)
	dst = bsoncore.AppendInt64Element(dst, "$slice", -task.MaxRuns)
	return end(end(dst, field), push)
}
