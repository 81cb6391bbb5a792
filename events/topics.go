package events

// Topic says how a topic is to be made.
type Topic struct {
	Name   string
	Single bool              // one partition, whatever is configured for the others
	Config map[string]string // its settings
}

// Retention of the topics. Assignments and reports are sent again until they are settled, so a day outlives any outage that a node
// outlives; what is in quarantine waits for a person.
const (
	dayMs  = "86400000"
	weekMs = "604800000"
)

// Topics lists the topics that the controller creates.
func Topics() []Topic {
	day := func() map[string]string { return map[string]string{"cleanup.policy": "delete", "retention.ms": dayMs} }
	return []Topic{
		{Name: TopicAssign, Config: day()},
		{Name: TopicControl, Config: day()},
		{Name: TopicStatus, Config: day()},
		{Name: TopicQuarantine, Single: true, Config: map[string]string{"cleanup.policy": "delete", "retention.ms": weekMs}},
	}
}
