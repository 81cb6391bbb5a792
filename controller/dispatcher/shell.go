package dispatcher

import (
	"regexp"
	"strings"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=][A-Za-z0-9_./:@%+,=-]*$`)

// ShellWord writes a text so that a shell takes it as one word, for the commands that an explanation names.
func ShellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
