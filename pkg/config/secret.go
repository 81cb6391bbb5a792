package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// hidden stands for a secret wherever one would be printed.
const hidden = "***"

// Secret is text that never shows itself: it prints, logs and encodes as ***,
// or as nothing when it is empty. Reveal returns the text.
type Secret string

var (
	_ fmt.Formatter  = Secret("")
	_ fmt.Stringer   = Secret("")
	_ slog.LogValuer = Secret("")
)

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String returns *** or, for an empty secret, nothing.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString returns what String returns, for %#v.
func (s Secret) GoString() string { return s.String() }

// Format writes what String returns for every verb: with a verb that does not
// fit a string, fmt would otherwise print the text itself. (It does for %p,
// which go vet refuses.)
func (s Secret) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, s.String()) // the error is fmt's to keep
}

// LogValue is the secret as log/slog prints it.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is the secret in JSON and other encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// URI is the address of a server that may hold a password. It prints, logs and
// encodes without its user, password and options; Reveal returns all of it.
type URI string

var (
	_ fmt.Formatter  = URI("")
	_ fmt.Stringer   = URI("")
	_ slog.LogValuer = URI("")
)

// Reveal returns the whole address.
func (u URI) Reveal() string { return string(u) }

// String returns the address with *** in the place of user, password and
// options. It cuts at the last @ of the text, wherever that stands, since a
// password may hold any character if the person forgot to escape it.
func (u URI) String() string {
	text := string(u)
	scheme, rest, found := strings.Cut(text, "://")
	if found {
		scheme += "://"
	} else {
		scheme, rest = "", text
	}
	user := ""
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, rest = hidden+"@", rest[at+1:]
	}
	if address, _, options := strings.Cut(rest, "?"); options {
		rest = address + "?" + hidden
	}
	return scheme + user + rest
}

// GoString returns what String returns, for %#v.
func (u URI) GoString() string { return u.String() }

// Format writes what String returns for every verb.
func (u URI) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, u.String()) // the error is fmt's to keep
}

// LogValue is the address as log/slog prints it.
func (u URI) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText is the address in JSON and other encodings.
func (u URI) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// maxSecretFile bounds what is read of a file that holds a secret, in bytes.
const maxSecretFile = 64 << 10

// readSecretFile returns the text of a file without the line ends that close
// it. Its error says what is wanted instead.
func readSecretFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("a file that can be read: %w", err)
	}
	defer func() { _ = file.Close() }() // opened for reading only
	content, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	if err != nil {
		return "", fmt.Errorf("a file that can be read: %w", err)
	}
	if len(content) > maxSecretFile {
		return "", fmt.Errorf("a file of at most %d bytes", maxSecretFile)
	}
	text := strings.TrimRight(string(content), "\r\n")
	if text == "" {
		return "", errors.New("a file that is not empty")
	}
	return text, nil
}
