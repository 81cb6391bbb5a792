package config

// Dev is what `skalds dev` takes from the environment; the rest it takes from
// its flags and from the defaults.
type Dev struct {
	Log

	// DispatcherStrategy is the strategy that the dispatcher starts with.
	DispatcherStrategy Strategy `envconfig:"DISPATCHER_STRATEGY" default:"LEAST_TASKS"`
}

// LoadDev reads the configuration of `skalds dev` from the environment. The
// error is an [Error] with every problem.
func LoadDev() (Dev, error) {
	var d Dev
	r := read(&d)
	if err := r.finish(checkFields(&d)); err != nil {
		return Dev{}, err
	}
	return d, nil
}

// Validate returns an [Error] with every problem, or nil.
func (d Dev) Validate() error { return errorOf(checkFields(&d)) }
