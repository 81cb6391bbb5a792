package config

// Client is the configuration of a command that talks to a running controller.
type Client struct {
	// Server is the base URL of the API.
	Server string `envconfig:"SKALDS_SERVER" default:"http://127.0.0.1:8000" syntax:"server"`
	// APIToken is sent with every call; empty sends none.
	APIToken Secret `envconfig:"API_TOKEN" syntax:"token"`
}

// LoadClient reads the configuration of a client from the environment. The
// error is an [Error] with every problem.
func LoadClient() (Client, error) {
	var c Client
	r := read(&c)
	if err := r.finish(checkFields(&c)); err != nil {
		return Client{}, err
	}
	return c, nil
}

// Validate returns an [Error] with every problem, or nil.
func (c Client) Validate() error { return errorOf(checkFields(&c)) }
