package config

// Mongo is how the controller reaches MongoDB.
type Mongo struct {
	// URI is the server, with user, password, TLS and all other options in it.
	URI URI `envconfig:"MONGO_HOST" default:"mongodb://127.0.0.1:27017" syntax:"mongo"`
	// Database holds all collections of Skalds.
	Database string `envconfig:"DB_NAME" default:"skalds" syntax:"database"`
}
