package events

// Topic describes a topic to create.
type Topic struct {
	Name   string
	Single bool              // one partition, whatever is configured for the others
	Config map[string]string // its settings
}

// Retention of the topics. Assignments and reports are sent again until they are acknowledged, so a day is longer than
// any outage that a node survives. What is in quarantine waits for a person.
const (
	dayMs  = "86400000"
	weekMs = "604800000"
)

// Topics returns the topics that the controller creates.
func Topics() []Topic {
	day := func() map[string]string { return map[string]string{"cleanup.policy": "delete", "retention.ms": dayMs} }
	return []Topic{
		{Name: TopicAssign, Config: day()},
		{Name: TopicControl, Config: day()},
		{Name: TopicStatus, Config: day()},
		{Name: TopicQuarantine, Single: true, Config: map[string]string{"cleanup.policy": "delete", "retention.ms": weekMs}},
	}
}
