package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/config"
)

func TestSecretsNeverShow(t *testing.T) {
	t.Parallel()
	type holder struct {
		Secret config.Secret
		URI    config.URI
	}
	held := holder{Secret: "hunter2", URI: "mongodb://user:hunter2@host/db?token=hunter2"}

	printed := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T"} {
		printed[verb] = fmt.Sprintf(verb, held)
		printed[verb+" secret"] = fmt.Sprintf(verb, held.Secret)
		printed[verb+" uri"] = fmt.Sprintf(verb, held.URI)
		printed[verb+" pointer"] = fmt.Sprintf(verb, &held)
	}
	encoded, err := json.Marshal(held)
	if err != nil {
		t.Fatal(err)
	}
	printed["json"] = string(encoded)
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "secret", held.Secret, "uri", held.URI, "held", held)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "secret", held.Secret, "uri", held.URI, "held", held)
	printed["slog"] = logged.String()

	for how, text := range printed {
		if strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%x", "hunter2")) ||
			strings.Contains(text, fmt.Sprintf("%X", "hunter2")) {
			t.Errorf("%s shows the secret: %s", how, text)
		}
	}
	if got, want := string(encoded), `{"Secret":"***","URI":"mongodb://***@host/db?***"}`; got != want {
		t.Errorf("json: got %s, want %s", got, want)
	}
	if held.Secret.Reveal() != "hunter2" || held.URI.Reveal() != "mongodb://user:hunter2@host/db?token=hunter2" {
		t.Error("Reveal does not return the text")
	}
	if got := config.Secret("").String(); got != "" {
		t.Errorf("an empty secret prints %q", got)
	}
}

func TestURIHidesWhatMayBeSecret(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"mongodb://h1:1,h2:2/":          "mongodb://h1:1,h2:2/",
		"mongodb://u:p@h1:1,h2:2/db":    "mongodb://***@h1:1,h2:2/db",
		"mongodb://u:p/@:x@h":           "mongodb://***@h",
		"mongodb://u:p?w@h/?replicaSet": "mongodb://***@h/?***",
		"mongodb+srv://h/?authSource=a": "mongodb+srv://h/?***",
		"u:p@h":                         "***@h",
		"":                              "",
	} {
		if got := config.URI(text).String(); got != want {
			t.Errorf("%q prints %q, want %q", text, got, want)
		}
	}
}
