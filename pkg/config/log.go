package config

// Log is what a process logs.
type Log struct {
	// Level is the lowest level that is logged.
	Level LogLevel `envconfig:"LOG_LEVEL" default:"info" words:"debug,info,warn,error" dev:"warn"`
}
