package mongo

import (
	"reflect"

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
	if c.Attempt == 0 {
		dst = orNull(dst, "attempt", func(dst []byte) []byte { return bsoncore.AppendInt64Element(dst, "0", 0) })
	} else {
		dst = bsoncore.AppendInt64Element(dst, "attempt", c.Attempt)
	}
	if c.ClaimID == "" {
		dst = orNull(dst, "claimId", func(dst []byte) []byte { return appendString(dst, "0", "") })
	} else {
		dst = appendString(dst, "claimId", c.ClaimID)
	}
	if w := c.IfDesired; w != nil {
		if *w == "" {
			dst = orNull(dst, "desired", func(dst []byte) []byte { return appendString(dst, "0", "") })
		} else {
			dst = appendString(dst, "desired", string(*w))
		}
	}
	if c.AsOf != 0 {
		dst = bsoncore.AppendInt64Element(dst, "assignedDateTime", c.AsOf)
	}
	if u := c.Update; u != nil {
		if u.From == 0 {
			dst = orNull(dst, "attachmentsVersion", func(dst []byte) []byte { return bsoncore.AppendInt64Element(dst, "0", 0) })
		} else {
			dst = bsoncore.AppendInt64Element(dst, "attachmentsVersion", u.From)
		}
	}
	return end(dst, start)
}

// orNull matches the one value, null and missing.
func orNull(dst []byte, key string, value func([]byte) []byte) []byte {
	dst, in := beginIn(dst, bson.TypeEmbeddedDocument, key)
	dst, list := beginIn(dst, bson.TypeArray, "$in")
	return end(end(bsoncore.AppendNullElement(value(dst), "1"), list), in)
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

// changes collects what an update sets, what it clears, and what it appends to the history.
type changes struct {
	set, unset []byte
	run        *task.Run
}

// json sets a field to a JSON text, or clears it if there is none.
func (u *changes) json(name string, raw []byte) {
	if len(raw) == 0 {
		u.clear(name)
		return
	}
	u.set = appendJSON(u.set, name, raw)
}

// text sets a field, or clears it if the value is empty.
func (u *changes) text(name, value string) {
	if value == "" {
		u.clear(name)
		return
	}
	u.set = appendString(u.set, name, value)
}

// number sets a field, or clears it if the value is 0.
func (u *changes) number(name string, n int64) {
	if n == 0 {
		u.clear(name)
		return
	}
	u.set = bsoncore.AppendInt64Element(u.set, name, n)
}

func (u *changes) clear(name string) { u.unset = appendString(u.unset, name, "") }

func changeUpdate(c *task.Change) bson.Raw {
	u := changes{set: make([]byte, 0, 256+len(c.Result)), unset: make([]byte, 0, 128)}
	u.text("lifecycleStatus", string(c.To))
	u.set = bsoncore.AppendInt64Element(u.set, "updateDateTime", c.UpdatedAt)

	a := c.Assign
	if a != nil {
		u.number("attempt", a.Attempt)
	}
	switch {
	case c.Unassign && c.To == task.Paused:
		u.clear("claimId")
	case a != nil:
		u.text("claimId", a.ClaimID)
	}
	switch {
	case c.Unassign:
		u.clear("executor")
		u.clear("incarnation")
	case a != nil:
		u.text("executor", a.Executor)
		u.text("incarnation", a.Incarnation)
	}
	switch {
	case c.Frees():
		u.clear("keyPermit")
		u.clear("poolPermit")
	case a != nil:
		u.text("keyPermit", a.KeyPermit)
		u.text("poolPermit", a.PoolPermit)
	}
	switch {
	case a != nil:
		u.number("assignedDateTime", a.At)
	case c.Reset:
		u.clear("assignedDateTime")
	}
	if c.StartedAt != 0 || a != nil || c.Reset {
		u.number("startDateTime", c.StartedAt)
	}
	if c.FinishedAt != 0 || c.Reset {
		u.number("finishDateTime", c.FinishedAt)
	}
	switch {
	case len(c.Result) > 0:
		u.set = appendJSON(u.set, "result", c.Result)
	case c.Result != nil || c.Reset:
		u.clear("result")
	}
	if c.Error != "" || a != nil || c.Reset {
		u.text("error", c.Error)
	}
	switch {
	case c.Progress != nil:
		u.set = appendValue(u.set, "progress", reflect.ValueOf(c.Progress))
	case a != nil || c.Reset:
		u.clear("progress")
	}
	switch {
	case c.Counts != nil:
		u.number("failures", int64(c.Counts.Failures))
		u.number("crashes", int64(c.Counts.Crashes))
	case c.Reset:
		u.clear("failures")
		u.clear("crashes")
	}
	if c.NotBefore != 0 || c.Reset {
		u.set = bsoncore.AppendInt64Element(u.set, "notBefore", c.NotBefore) // 0 is how it is found; see encode
	}
	if n := c.Update; n != nil {
		u.json("attachments", n.Attachments)
		u.number("attachmentsVersion", n.From+1)
	}
	if c.Run != nil {
		u.run = c.Run
	}
	switch {
	case c.To.Terminal() || c.ClearDesired:
		u.clear("desired")
	case c.Desired != "" || c.Reset:
		u.text("desired", string(c.Desired))
	}
	return u.document()
}

func (u *changes) document() bson.Raw {
	dst, start := begin(make([]byte, 0, 64+len(u.set)+len(u.unset)))
	dst, set := beginIn(dst, bson.TypeEmbeddedDocument, "$set")
	dst = end(append(dst, u.set...), set)
	if len(u.unset) > 0 {
		var unset int32
		dst, unset = beginIn(dst, bson.TypeEmbeddedDocument, "$unset")
		dst = end(append(dst, u.unset...), unset)
	}
	if u.run != nil {
		dst = appendRun(dst, u.run)
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
