package config

// PriorityMode says how priorities share the nodes.
type PriorityMode string

// The modes.
const (
	PriorityStrict   PriorityMode = "strict"   // nothing of a lower priority runs while something of a higher one could
	PriorityWeighted PriorityMode = "weighted" // priority p gets a share of p+1
)

// Set takes the text's value.
func (m *PriorityMode) Set(text string) error { return setEnum(m, text) }
func (m PriorityMode) check() error           { return checkEnum(m) }
func (m PriorityMode) words() []string {
	return []string{string(PriorityStrict), string(PriorityWeighted)}
}
