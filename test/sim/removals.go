package main

import "github.com/skalds-go/skalds/pkg/task"

// created notes that a task came into the store. One that was removed meanwhile begins anew.
func (c *checker) created(id string) {
	if t := c.task(id); t.gone {
		t.gone, t.ends, t.retries, t.desired, t.times = false, 0, 0, desired{want: task.Running}, t.made
	}
}

// removes checks that what a call removes from the store had ended, and was last changed before a time.
func (c *checker) removes(before int64, call func() error) error {
	c.changes++
	type last struct {
		t       *taskRecord
		ended   bool
		updated int64
	}
	var there []last
	for _, t := range c.order {
		if doc, ok := c.truth.get(t.id); ok {
			there = append(there, last{t, doc.LifecycleStatus.Terminal(), doc.UpdateDateTime})
		}
	}
	err := call()
	for _, l := range there {
		if _, ok := c.truth.get(l.t.id); ok {
			continue
		}
		l.t.gone = true
		c.world.note("store", "%s is removed", l.t.id)
		if !l.ended || l.updated >= before {
			c.violate("%s was removed: it had ended: %t, at %d ms; it should have before %d ms", l.t.id, l.ended, l.updated-epoch, before-epoch)
		}
	}
	return err
}
