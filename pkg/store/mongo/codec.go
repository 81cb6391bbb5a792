package mongo

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/skalds-go/skalds/pkg/task"
)

// The driver's own struct codec is not used: it stops at the first field it cannot read and takes a document by its Go
// types, while here documents come from other programs and what can be read must be. The bson tags of the task package
// say the names.

// field is one field of a struct in its document.
type field struct {
	name  string
	index int
	omit  bool // left out when empty
}

// fields is the fields of a struct in their order, and by name.
type fields struct {
	list   []field
	byName map[string]int
}

var documents = func() map[reflect.Type]fields {
	all := map[reflect.Type]fields{}
	for _, t := range []reflect.Type{
		reflect.TypeFor[task.Task](), reflect.TypeFor[task.Backoff](), reflect.TypeFor[task.Progress](), reflect.TypeFor[task.Run](),
	} {
		fs := fields{byName: map[string]int{}}
		for i := range t.NumField() {
			name, options, _ := strings.Cut(t.Field(i).Tag.Get("bson"), ",")
			fs.byName[name] = len(fs.list)
			fs.list = append(fs.list, field{name: name, index: i, omit: options == "omitempty"})
		}
		all[t] = fs
	}
	return all
}()

var rawJSON = reflect.TypeFor[json.RawMessage]()

// encode is the document of a new task, with an _id, and with what it is found by while it waits: its queue, and a
// notBefore in any case.
func encode(t *task.Task) bson.Raw {
	dst, start := begin(make([]byte, 0, 512+len(t.Attachments)+len(t.Result)))
	dst = bsoncore.AppendObjectIDElement(dst, "_id", bson.NewObjectID())
	dst = appendFields(dst, reflect.ValueOf(t).Elem())
	if t.NotBefore == 0 {
		dst = bsoncore.AppendInt64Element(dst, "notBefore", 0)
	}
	return end(appendString(dst, "queue", t.Queue()), start)
}

func appendFields(dst []byte, v reflect.Value) []byte {
	for _, f := range documents[v.Type()].list {
		if fv := v.Field(f.index); !f.omit || !empty(fv) {
			dst = appendValue(dst, f.name, fv)
		}
	}
	return dst
}

// empty is what omitempty leaves out: as for JSON.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

func appendValue(dst []byte, key string, v reflect.Value) []byte {
	if v.Type() == rawJSON {
		return appendJSON(dst, key, v.Bytes())
	}
	switch v.Kind() {
	case reflect.String:
		return appendString(dst, key, v.String())
	case reflect.Bool:
		return bsoncore.AppendBooleanElement(dst, key, v.Bool())
	case reflect.Int:
		return appendInt(dst, key, v.Int())
	case reflect.Int64:
		return bsoncore.AppendInt64Element(dst, key, v.Int())
	case reflect.Float64:
		return bsoncore.AppendDoubleElement(dst, key, v.Float())
	case reflect.Pointer:
		return appendValue(dst, key, v.Elem())
	case reflect.Struct:
		dst, start := beginIn(dst, bson.TypeEmbeddedDocument, key)
		return end(appendFields(dst, v), start)
	case reflect.Slice:
		dst, start := beginIn(dst, bson.TypeArray, key)
		for i := range v.Len() {
			dst = appendValue(dst, position(i), v.Index(i))
		}
		return end(dst, start)
	case reflect.Map:
		dst, start := beginIn(dst, bson.TypeEmbeddedDocument, key)
		labels, _ := reflect.TypeAssert[map[string]string](v)
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			dst = appendString(dst, k, labels[k])
		}
		return end(dst, start)
	default:
		panic("mongo store: no BSON for " + v.Type().String())
	}
}

// decode reads a document into t, as much of it as can be read. The error names what cannot. Labels that are a string
// are a selector.
func decode(doc bson.Raw, t *task.Task) error {
	if err := doc.Validate(); err != nil {
		return fmt.Errorf("not a BSON document: %w", err)
	}
	err := decodeFields(doc, reflect.ValueOf(t).Elem())
	if text, ok := doc.Lookup("labels").StringValueOK(); ok && text != "" {
		if t.Selector != "" {
			text = t.Selector + "," + text
		}
		t.Selector = text
	}
	return err
}

func decodeFields(doc bson.Raw, v reflect.Value) error {
	elements, err := doc.Elements()
	if err != nil {
		return fmt.Errorf("not a BSON document: %w", err)
	}
	fs := documents[v.Type()]
	var problems []error
	for _, e := range elements {
		i, ours := fs.byName[e.Key()]
		if !ours {
			continue
		}
		fv := v.Field(fs.list[i].index)
		fv.SetZero() // a name that comes twice: the last one counts
		if err := decodeValue(e.Value(), fv); err != nil {
			problems = append(problems, fmt.Errorf("%s %w", e.Key(), err))
		}
	}
	return errors.Join(problems...)
}

func decodeValue(rv bson.RawValue, v reflect.Value) error {
	if isNull(rv) {
		return nil
	}
	if v.Type() == rawJSON {
		raw, err := readJSON(rv)
		if err != nil {
			return fmt.Errorf("is not readable: %w", err)
		}
		v.SetBytes(raw)
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		s, ok := rv.StringValueOK()
		if !ok {
			return wrongType(rv, "a string")
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := rv.BooleanOK()
		if !ok {
			return wrongType(rv, "true or false")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, ok := whole(rv)
		if !ok {
			return wrongType(rv, "a whole number")
		}
		v.SetInt(n)
	case reflect.Float64:
		f, ok := rv.AsFloat64OK()
		if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
			return wrongType(rv, "a number")
		}
		v.SetFloat(f)
	case reflect.Pointer:
		e := reflect.New(v.Type().Elem())
		if err := decodeValue(rv, e.Elem()); err != nil {
			return err
		}
		v.Set(e)
	case reflect.Struct:
		doc, ok := rv.DocumentOK()
		if !ok {
			return wrongType(rv, "a document")
		}
		return decodeFields(doc, v)
	case reflect.Slice:
		return decodeSlice(rv, v)
	case reflect.Map:
		return decodeLabels(rv, v)
	default:
		panic("mongo store: no BSON for " + v.Type().String())
	}
	return nil
}

func decodeSlice(rv bson.RawValue, v reflect.Value) error {
	if rv.Type != bson.TypeArray {
		return wrongType(rv, "an array")
	}
	values, err := bson.Raw(rv.Value).Values()
	if err != nil {
		return fmt.Errorf("is not readable: %w", err)
	}
	s := reflect.MakeSlice(v.Type(), len(values), len(values))
	for i, e := range values {
		if err := decodeValue(e, s.Index(i)); err != nil {
			return fmt.Errorf("[%d] %w", i, err)
		}
	}
	v.Set(s)
	return nil
}

func decodeLabels(rv bson.RawValue, v reflect.Value) error {
	if _, ok := rv.StringValueOK(); ok {
		return nil // a selector; see decode
	}
	doc, ok := rv.DocumentOK()
	if !ok {
		return wrongType(rv, "a document or a selector")
	}
	elements, err := doc.Elements()
	if err != nil {
		return fmt.Errorf("is not readable: %w", err)
	}
	labels := make(map[string]string, len(elements))
	for _, e := range elements {
		s, ok := e.Value().StringValueOK()
		if !ok {
			return fmt.Errorf(".%s %w", e.Key(), wrongType(e.Value(), "a string"))
		}
		labels[e.Key()] = s
	}
	v.Set(reflect.ValueOf(labels))
	return nil
}

// whole is the value of a number without a fraction, of whatever numeric type: the mongo shell writes doubles.
func whole(rv bson.RawValue) (int64, bool) {
	switch rv.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return rv.AsInt64OK()
	case bson.TypeDouble:
		const exact = 1 << 53
		f := rv.Double()
		return int64(f), f == math.Trunc(f) && math.Abs(f) <= exact
	case bson.TypeDecimal128:
		if d := rv.Decimal128(); !d.IsNaN() && d.IsInf() == 0 {
			n, exp, err := d.BigInt()
			return n.Int64(), err == nil && exp == 0 && n.IsInt64()
		}
	default:
	}
	return 0, false
}

// wrongType says what a field holds and what it must be.
func wrongType(rv bson.RawValue, want string) error {
	text, err := writeJSON(nil, rv, 0)
	if err != nil {
		text = nil
	}
	return fmt.Errorf("is %s (%s): must be %s", cut(string(text), 40), rv.Type, want)
}

// cut returns at most n bytes of s.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

// read returns the task of a document. If the document does not decode as a whole, the task has what does, and the
// reason in its error.
func read(doc bson.Raw) task.Task {
	var t task.Task
	if err := decode(doc, &t); err != nil && t.Error == "" {
		t.Error = reason(err)
	}
	return t
}

// reason is the text of an error on one line, and not longer than a person reads.
func reason(err error) string {
	return cut("the document cannot be read: "+strings.ReplaceAll(err.Error(), "\n", "; "), 1000)
}
