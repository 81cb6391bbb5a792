package config

// SQLite is where STORE=sqlite keeps the tasks.
type SQLite struct {
	// Path is the file; its directory must exist.
	Path string `envconfig:"SQLITE_PATH" default:"skalds.db"`
	// Sync says what an acknowledged write outlives.
	Sync SQLiteSync `envconfig:"SQLITE_SYNC" default:"full" words:"full,normal"`
}
