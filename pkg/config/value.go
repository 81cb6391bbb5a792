package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration reads a length of time from text: a plain number is seconds ("5",
// "0.5"), everything else is as in [time.ParseDuration] ("500ms", "1h30m").
// The fields of the structs are plain time.Durations; this is how they, and
// flags, are read.
type Duration time.Duration

// Set takes the text's value.
func (d *Duration) Set(text string) error {
	if _, err := strconv.ParseFloat(text, 64); err == nil && strings.Trim(text, "+-.0123456789") == "" {
		text += "s"
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("a number of seconds, or a length of time such as 500ms, 2s or 1h30m")
	}
	*d = Duration(v)
	return nil
}

// String returns the length of time as time.Duration prints it.
func (d Duration) String() string { return time.Duration(d).String() }

// Type names the kind of value in the help of a flag.
func (d Duration) Type() string { return "duration" }

// number reads a whole number in decimal. envconfig alone would read 010 as 8.
type number int

// Set takes the text's value.
func (n *number) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(v) != text {
		return errors.New("a whole number in decimal")
	}
	*n = number(v)
	return nil
}

// boolean reads true or false.
type boolean bool

// Set takes the text's value.
func (b *boolean) Set(text string) error {
	switch strings.ToLower(text) {
	case "true", "1":
		*b = true
	case "false", "0":
		*b = false
	default:
		return errors.New("true or false")
	}
	return nil
}

// maxAddresses bounds a list of addresses.
const maxAddresses = 100

// Addresses is a list of host:port, from text divided by commas. Spaces around
// an address are dropped.
type Addresses []string

// Set takes the text's value.
func (a *Addresses) Set(text string) error {
	parts := strings.Split(text, ",")
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	*a = parts
	return a.check()
}

// String returns the text that Set reads.
func (a Addresses) String() string { return strings.Join(a, ",") }

func (a Addresses) check() error {
	if len(a) > maxAddresses {
		return fmt.Errorf("at most %d addresses", maxAddresses)
	}
	for _, address := range a {
		host, port, err := net.SplitHostPort(address)
		n, numErr := strconv.Atoi(port)
		if err != nil || numErr != nil || n < 1 || n > 65535 || !isHost(host) {
			return fmt.Errorf("host:port, or several divided by commas (%q is not one)", shorten(address))
		}
	}
	return nil
}

// A syntax is a rule for the text of a field, named by its syntax tag.
type syntax struct {
	match func(string) bool
	want  string
}

var (
	idPattern       = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
	databasePattern = regexp.MustCompile(`^[^/\\. "$*<>:|?\x00-\x1f\x7f]{1,63}$`)
	hostPattern     = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9_.])?$`)
	tokenPattern    = regexp.MustCompile(`^[\x21-\x7e]{0,1000}$`)
	mongoPattern    = regexp.MustCompile(`^mongodb(\+srv)?://[^/?]`)
)

var syntaxes = map[string]syntax{
	"id":       {idPattern.MatchString, "1 to 128 characters of A-Z, a-z, 0-9, dot, underscore and hyphen"},
	"database": {databasePattern.MatchString, `1 to 63 bytes without any of / \ . " $ * < > : | ? and without spaces`},
	"host":     {isHost, "a host name or an IP address, without a port"},
	"token":    {tokenPattern.MatchString, "at most 1000 visible ASCII characters, without spaces"},
	"mongo":    {mongoPattern.MatchString, "a URI such as mongodb://127.0.0.1:27017 or mongodb+srv://cluster.example.org"},
	"server":   {isServer, "a URL such as http://127.0.0.1:8000, with a host, and without user, query and fragment"},
}

func isHost(host string) bool {
	return net.ParseIP(host) != nil || hostPattern.MatchString(host)
}

func isServer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// isLoopback says whether only this machine reaches a server on that host.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || (ip != nil && ip.IsLoopback())
}
