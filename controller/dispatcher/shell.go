package dispatcher

import (
	"regexp"
	"strings"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=][A-Za-z0-9_./:@%+,=-]*$`)

// ShellWord quotes a text so that a shell reads it as one word. Explanations name commands with it.
func ShellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
