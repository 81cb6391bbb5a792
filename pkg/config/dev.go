package config

import "slices"

// Dev is the configuration of `skalds dev`: that of its controller and of each
// of its nodes, which is one and the same where a variable is for both.
//
// What `skalds dev` gives them by itself is not read and has its default: where
// Kafka, Redis, the store and the API are, and a node's ID, which is empty. A
// developer waits for the end of it, so that nodes drain for a shorter time.
type Dev struct {
	Controller Controller
	Node       Node
}

// LoadDev reads the configuration of `skalds dev` from the environment. The
// error is an [Error] with every problem.
func LoadDev() (Dev, error) {
	var d Dev
	r := readFields(d.fields())
	if err := r.finish(d.problems()); err != nil {
		return Dev{}, err
	}
	return d, nil
}

func (d *Dev) problems() []Problem {
	n := d.Node
	n.ID = "given" // by skalds dev
	return slices.Concat(d.Controller.problems(), n.problems())
}

// notRead is the tag of what `skalds dev` gives by itself.
const notRead = "-"

// fields returns the fields that are read, with their defaults here, and gives
// all others their own.
func (d *Dev) fields() []field {
	setDefaults(&d.Controller)
	setDefaults(&d.Node)
	return slices.Collect(func(yield func(field) bool) {
		for _, f := range slices.Concat(fields(&d.Controller), fields(&d.Node)) {
			if f.dev == notRead {
				continue
			}
			if f.dev != "" {
				f.fallback = f.dev
			}
			if !yield(f) {
				return
			}
		}
	})
}
