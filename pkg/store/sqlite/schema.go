package sqlite

import (
	"errors"
	"fmt"
)

// applicationID marks the file as one of Skalds: "skal" in ASCII.
const applicationID = 0x736b616c

// migrations make the schema: the first n of them make version n, which stands in the file as user_version. Those that
// have been in a release never change; a new one goes to the end.
//
// Statuses are numbers in the order of a task's life: 0 Created, 1 Assigning, 2 Running, 3 Paused, and above 3 what has
// ended. Text that is not there is NULL, a number that is not there 0.
var migrations = []string{`
CREATE TABLE tasks (
	n           INTEGER PRIMARY KEY,
	-- given with the task
	id          TEXT    NOT NULL,
	status      INTEGER NOT NULL,
	mode        INTEGER NOT NULL,
	priority    INTEGER NOT NULL,
	created     INTEGER NOT NULL,
	updated     INTEGER NOT NULL,
	not_before  INTEGER NOT NULL,
	deadline    INTEGER NOT NULL,
	persistent  INTEGER NOT NULL,
	class       TEXT    NOT NULL,
	key         TEXT,
	queue       TEXT    NOT NULL,
	spec        TEXT,             -- what never changes and is seldom there, as JSON
	-- set by its runs
	executor    TEXT,
	attempt     INTEGER NOT NULL DEFAULT 0,
	claim       TEXT,
	desired     TEXT,
	incarnation TEXT,
	assigned    INTEGER NOT NULL DEFAULT 0,
	started     INTEGER NOT NULL DEFAULT 0,
	finished    INTEGER NOT NULL DEFAULT 0,
	error       TEXT,
	version     INTEGER NOT NULL DEFAULT 0, -- of the attachments
	key_permit  TEXT,
	pool_permit TEXT,
	run         TEXT,             -- what changes and is seldom there, as JSON
	-- may be large
	attachments ANY,              -- JSON; or 1: it is large, and in the table bodies
	result      BLOB              -- JSON
) STRICT;
CREATE UNIQUE INDEX tasks_id       ON tasks (id);
CREATE UNIQUE INDEX tasks_key      ON tasks (key)                              WHERE key IS NOT NULL;
CREATE UNIQUE INDEX tasks_permit   ON tasks (key_permit)                       WHERE key_permit IS NOT NULL;
CREATE UNIQUE INDEX tasks_pool     ON tasks (pool_permit)                      WHERE pool_permit IS NOT NULL;
CREATE INDEX        tasks_queue    ON tasks (not_before, queue, created, id)   WHERE status = 0 AND mode = 0;
CREATE INDEX        tasks_status   ON tasks (status, created, id, executor);
CREATE INDEX        tasks_wishes   ON tasks (desired)                          WHERE desired IS NOT NULL;
CREATE INDEX        tasks_deadline ON tasks (deadline)                         WHERE deadline <> 0 AND status < 4;
CREATE INDEX        tasks_ended    ON tasks (updated)                          WHERE status > 3;

-- A row is written anew with each change of it: what is large and does not change stands apart.
CREATE TABLE bodies (
	n    INTEGER PRIMARY KEY,
	body BLOB NOT NULL
) STRICT;
CREATE TRIGGER tasks_bodies AFTER DELETE ON tasks WHEN typeof(old.attachments) = 'integer'
BEGIN
	DELETE FROM bodies WHERE n = old.n;
END;

-- Claims that are not yet in the tasks' rows, as JSON.
CREATE TABLE claims (
	n     INTEGER PRIMARY KEY,
	noted TEXT NOT NULL
) STRICT;

CREATE TABLE leader (
	n       INTEGER PRIMARY KEY CHECK (n = 1),
	holder  TEXT    NOT NULL,
	address TEXT    NOT NULL,
	mode    TEXT    NOT NULL,
	term    INTEGER NOT NULL,
	counter INTEGER NOT NULL
) STRICT;
INSERT INTO leader VALUES (1, '', '', '', 0, 0);

CREATE TABLE positions (
	topic     TEXT    NOT NULL,
	partition INTEGER NOT NULL,
	at        INTEGER NOT NULL,
	seal      INTEGER NOT NULL, -- the 64 bits of Check
	PRIMARY KEY (topic, partition)
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
	name  TEXT NOT NULL PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`, `
DROP INDEX tasks_wishes;
CREATE INDEX tasks_desired ON tasks (desired) WHERE desired IS NOT NULL;
`}

var (
	errForeign = errors.New("it is a SQLite database of another program: name another file")
	errNewer   = errors.New("it was written by a newer version of Skalds: run that one, or name another file")
)

// migrate brings the file's schema up to date, in one transaction.
func migrate(c *conn, steps []string) error {
	version, err := c.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	owner, err := c.number("PRAGMA application_id")
	if err != nil {
		return err
	}
	objects, err := c.number("SELECT count(*) FROM sqlite_schema")
	switch {
	case err != nil:
		return err
	case owner != applicationID && (owner != 0 || version != 0 || objects != 0):
		return errForeign
	case version > int64(len(steps)):
		return fmt.Errorf("its schema has version %d, and this program knows %d: %w", version, len(steps), errNewer)
	case version == int64(len(steps)):
		return nil
	}
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, step := range steps[version:] {
		if err == nil {
			_, err = c.exec(step)
		}
	}
	if err == nil {
		_, err = c.exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(steps)))
	}
	if err == nil {
		_, err = c.exec("COMMIT")
	}
	if err != nil {
		_, undo := c.exec("ROLLBACK")
		return errors.Join(err, undo)
	}
	return nil
}
