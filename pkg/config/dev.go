package config

// Dev is the configuration of `skalds dev`; all else it takes from its flags.
type Dev struct {
	Log
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
