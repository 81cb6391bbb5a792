package api

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/rawjson"
	"github.com/skalds-go/skalds/pkg/task"
)

// placementFields are the members of a submit that say where and when a task may run.
var placementFields = map[string]field{
	"labels":   (*taskDecoder).labels,
	"selector": (*taskDecoder).selector,
	"strategy": (*taskDecoder).strategy,
	"namespace": func(d *taskDecoder, name string, value []byte) {
		d.key(&d.task.Namespace, name, value)
	},
	"stickyKey": func(d *taskDecoder, name string, value []byte) {
		d.key(&d.task.StickyKey, name, value)
	},
	"antiAffinityKey": func(d *taskDecoder, name string, value []byte) {
		d.key(&d.task.AntiAffinityKey, name, value)
	},
	"concurrencyKey": func(d *taskDecoder, name string, value []byte) {
		d.key(&d.task.ConcurrencyKey, name, value)
	},
	"pool":             func(d *taskDecoder, name string, value []byte) { d.key(&d.task.Pool, name, value) },
	"slots":            func(d *taskDecoder, name string, value []byte) { d.amount(&d.task.Slots, name, value) },
	"concurrencyLimit": func(d *taskDecoder, name string, value []byte) { d.amount(&d.task.ConcurrencyLimit, name, value) },
}

// amount reads a whole number of slots or tasks; 0 = 1.
func (d *taskDecoder) amount(to *int, name string, value []byte) {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 0 || n > task.MaxSlots {
		d.wrongf(name, value, "must be a whole number from 0 (one) to %d", task.MaxSlots)
		return
	}
	*to = n
}

// labels reads what a task asks of its node's labels: a selector, or plain labels.
func (d *taskDecoder) labels(name string, value []byte) {
	if value[0] == '"' {
		d.selector(name, value)
		return
	}
	if value[0] != '{' {
		d.wrongf(name, value, `must be a selector ("zone=cn-north,!spot") or an object of plain labels ({"zone":"cn-north"})`)
		return
	}
	labels := make(map[string]string)
	rawjson.Members(value, func(key, text []byte) bool {
		if len(labels) == task.MaxRequirements {
			d.wrongf(name, nil, "has more than %d labels", task.MaxRequirements)
			return false
		}
		if text[0] != '"' {
			d.wrongf(name+"."+shorten(string(key)), text, "must be a string")
			return false
		}
		labels[string(key)] = string(rawjson.Unquote(text))
		return true
	})
	if d.refusal.status != 0 {
		return
	}
	if len(labels) > 0 {
		d.task.Labels = labels
	}
	if _, err := (&task.Task{Labels: labels}).NodeSelector(); err != nil {
		d.wrongf(name, nil, "%v", err)
	}
}

func (d *taskDecoder) selector(name string, value []byte) {
	s, ok := d.str(name, value)
	if !ok {
		return
	}
	_, err := task.ParseSelector(string(s))
	var bad *task.SelectorError
	switch {
	case errors.As(err, &bad):
		d.wrongf(name, value, "does not parse at byte %d: %s", bad.At, bad.Msg)
	case err != nil:
		d.wrongf(name, value, "%v", err)
	case d.task.Selector != "":
		d.wrongf(name, value, "stands there twice, as labels and as selector: give one of them")
	default:
		d.task.Selector = string(s)
	}
}

func (d *taskDecoder) strategy(name string, value []byte) {
	s, ok := d.str(name, value)
	if !ok || len(s) == 0 {
		return
	}
	strategy, known := placement.ParseStrategy(string(s))
	if !known {
		d.refusal.addf(http.StatusUnprocessableEntity, d.location+"."+name, echo(value), "must be one of %v, without regard to case", placement.Strategies())
		return
	}
	d.task.Strategy = string(strategy)
}
