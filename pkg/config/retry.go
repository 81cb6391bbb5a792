package config

import "time"

// Retry is what holds for tasks that say nothing of their own.
type Retry struct {
	// MaxAttempts is how many failures end a task: 1 for the first one, 0 for
	// none.
	MaxAttempts int `envconfig:"MAX_ATTEMPTS" default:"3" range:"0..1000000"`
	// MaxCrashes is how often the process of a task's node may die while it runs
	// until that ends the task; 0 for any number.
	MaxCrashes int `envconfig:"MAX_CRASHES" default:"3" range:"0..1000000"`
	// BackoffBase, BackoffFactor and BackoffMax make the longest wait after the
	// n-th failure: base times factor to the power of n-1, at most max. The wait
	// is anything from nothing to that.
	BackoffBase   time.Duration `envconfig:"RETRY_BACKOFF_BASE" default:"1s" range:"0s..24h"`
	BackoffFactor int           `envconfig:"RETRY_BACKOFF_FACTOR" default:"2" range:"1..100"`
	BackoffMax    time.Duration `envconfig:"RETRY_BACKOFF_MAX" default:"5m" range:"0s..720h"`
}
