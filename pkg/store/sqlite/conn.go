package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	sqlite "modernc.org/sqlite"
)

// conn is one connection with its prepared statements. It is the driver's own: what database/sql puts on top costs
// about as much as a small statement does. One goroutine uses it at a time.
type conn struct {
	driver.Conn

	stmts   map[string]*stmt
	updates map[int]string // see tx.updating
	values  []driver.Value // of the statement that tx.update runs
}

// stmt is a prepared statement.
type stmt struct {
	prepared

	args []driver.NamedValue
	row  []driver.Value
}

// prepared is what the driver's statements can do.
type prepared interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// dial opens a connection to a file. Params are those of the file's URI.
func dial(ctx context.Context, path string, params ...string) (*conn, error) {
	uri := "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path) + "?" + strings.Join(params, "&")
	connector, err := sqlite.NewConnector(uri)
	if err != nil {
		return nil, err //nolint:wrapcheck // fail names the file
	}
	c, err := connector.Connect(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // fail names the file
	}
	return &conn{Conn: c, stmts: make(map[string]*stmt), updates: make(map[int]string)}, nil
}

// Close frees the connection and its statements.
func (c *conn) Close() error {
	errs := make([]error, 0, len(c.stmts)+1)
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.Conn.Close())...)
}

// maxStatements is how many prepared statements a connection keeps: more than the flows repeat. There are some hundred
// more for the filters of List.
const maxStatements = 64

// statement is the statement of a text, which is prepared once.
func (c *conn) statement(sql string) (*stmt, error) {
	if s, ok := c.stmts[sql]; ok {
		return s, nil
	}
	if len(c.stmts) >= maxStatements {
		for text, s := range c.stmts {
			if err := s.Close(); err != nil {
				return nil, err //nolint:wrapcheck // fail names the file
			}
			delete(c.stmts, text)
		}
	}
	p, err := c.Prepare(sql)
	if err != nil {
		return nil, err //nolint:wrapcheck // fail names the file
	}
	able, ok := p.(prepared)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's statement %T takes no context", p), p.Close())
	}
	s := &stmt{prepared: able}
	c.stmts[sql] = s
	return s, nil
}

// bind puts values in the statement's own list of arguments.
func (s *stmt) bind(values []driver.Value) []driver.NamedValue {
	s.args = s.args[:0]
	for i, v := range values {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return s.args
}

// exec runs a statement that gives no rows, and says how many rows it changed. It does not stop halfway: what a
// transaction does, it does as a whole.
func (c *conn) exec(sql string, values ...driver.Value) (int64, error) {
	result, err := c.run(sql, values)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected() //nolint:wrapcheck // it gives no error
}

// insert is exec for a statement that adds one row at the most; it says which number that row has.
func (c *conn) insert(sql string, values ...driver.Value) (n, row int64, err error) {
	result, err := c.run(sql, values)
	if err != nil {
		return 0, 0, err
	}
	n, _ = result.RowsAffected() // it gives no error
	row, _ = result.LastInsertId()
	return n, row, nil
}

func (c *conn) run(sql string, values []driver.Value) (driver.Result, error) {
	s, err := c.statement(sql)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.Background(), s.bind(values)) //nolint:wrapcheck // fail names the file
}

// query runs a statement that finds its rows by an index, and calls yield for each; the row is only lent.
func (c *conn) query(sql string, yield func(row []driver.Value) error, values ...driver.Value) error {
	return c.search(context.Background(), sql, yield, values...)
}

// search is query for a statement that may have to look at many rows to find the first. The end of ctx ends that, which
// costs about as much as a small statement does; it does not end the search for further rows.
func (c *conn) search(ctx context.Context, sql string, yield func(row []driver.Value) error, values ...driver.Value) (err error) {
	s, err := c.statement(sql)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, s.bind(values))
	if err != nil {
		return err //nolint:wrapcheck // fail names the file
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if s.row == nil {
		s.row = make([]driver.Value, len(rows.Columns()))
	}
	for {
		switch err := rows.Next(s.row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err //nolint:wrapcheck // fail names the file
		}
		if err := yield(s.row); err != nil {
			return err
		}
	}
}

// number runs a query that gives one whole number, or none: then it is 0.
func (c *conn) number(sql string, values ...driver.Value) (n int64, err error) {
	err = c.query(sql, func(row []driver.Value) error { n, _ = row[0].(int64); return nil }, values...)
	return n, err
}
