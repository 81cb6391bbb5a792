package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"github.com/skalds-go/skalds/pkg/store"
)

const (
	readSetting = "SELECT value FROM settings WHERE name = ?"
	saveSetting = "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"

	// dispatcherSetting is the name of what can be changed of the dispatcher; it is JSON.
	dispatcherSetting = "dispatcher"
)

// dispatcher reads the dispatcher's settings.
func (c *conn) dispatcher() (d store.Dispatcher, err error) {
	err = c.query(readSetting, func(row []driver.Value) error {
		value, _ := row[0].(string)
		if err := json.Unmarshal([]byte(value), &d); err != nil {
			return fmt.Errorf("the setting %s is %q: %w", dispatcherSetting, value, err)
		}
		return nil
	}, dispatcherSetting)
	return d, err
}

// Dispatcher implements store.Settings.
func (s *Store) Dispatcher(ctx context.Context) (d store.Dispatcher, err error) {
	err = s.read(ctx, "read settings", func(c *conn) (err error) {
		d, err = c.dispatcher()
		return err
	})
	return d, err
}

// SwapDispatcher implements store.Settings.
func (s *Store) SwapDispatcher(ctx context.Context, next store.Dispatcher) (swapped bool, err error) {
	stored, err := next.Next()
	if err != nil {
		return false, fmt.Errorf("sqlite: settings: %w", err)
	}
	value, err := json.Marshal(stored)
	if err != nil {
		return false, fmt.Errorf("sqlite: settings: %w", err)
	}
	err = s.commit(ctx, "write settings", s.urgent, &call{rows: 1, do: func(t *tx) error {
		old, err := t.dispatcher()
		if swapped = err == nil && old.Version == next.Version; !swapped {
			return err
		}
		_, err = t.exec(saveSetting, dispatcherSetting, string(value))
		return err
	}})
	return err == nil && swapped, err
}
