package runner

import (
	"strings"
	"unicode/utf8"

	"roundtable/internal/fault"
)

// MaxCommand bounds the text of a command, in bytes.
const MaxCommand = 32 << 10

// shellSyntax lists the characters that mean something to a shell and nothing
// here: outside quotes they are refused and not passed on, so that nobody
// believes they had an effect.
const shellSyntax = ";|&><`$"

// Split splits a command into words as a POSIX shell would, without one:
// blanks separate, '…' keeps all, "…" keeps all but the backslash of \" \\ \$ \`
// and of a line's end, and a backslash elsewhere keeps the character after it.
// Nothing is expanded.
//
// It refuses, as a *fault.Error, what only a shell could do, line breaks
// outside quotes, open quotes, NUL, invalid UTF-8, and a command that is empty
// or longer than MaxCommand.
func Split(command string) ([]string, error) {
	switch {
	case len(command) > MaxCommand:
		return nil, fault.Errorf(fault.TooLarge, "command_too_long", "the command has %d bytes; at most %d are allowed", len(command), MaxCommand)
	case strings.ContainsRune(command, 0):
		return nil, fault.Errorf(fault.Invalid, "command_malformed", "the command contains a NUL byte")
	case !utf8.ValidString(command):
		return nil, fault.Errorf(fault.Invalid, "command_malformed", "the command is not valid UTF-8")
	}
	var (
		words  []string
		word   strings.Builder
		inWord bool
	)
	for i := 0; i < len(command); {
		c := command[i]
		switch {
		case c == ' ' || c == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
			i++
			continue
		case c == '\n' || c == '\r':
			return nil, fault.Errorf(fault.Refused, "command_shell_syntax", "line break at position %d: one command only, on one line", i+1).With("position", i+1)
		case strings.IndexByte(shellSyntax, c) >= 0:
			return nil, fault.Errorf(fault.Refused, "command_shell_syntax",
				"%q at position %d would need a shell, and commands run without one; put it in quotes to pass it on as it is", string(c), i+1).With("position", i+1)
		}
		n, err := take(&word, command, i)
		if err != nil {
			return nil, err
		}
		inWord = true
		i += n
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) == 0 {
		return nil, fault.Errorf(fault.Invalid, "command_empty", "the command is empty")
	}
	return words, nil
}

// take adds the quoted text, escaped character or plain byte at i to word and
// returns how many bytes of command it was.
func take(word *strings.Builder, command string, i int) (int, error) {
	rest := command[i:]
	switch rest[0] {
	case '\'':
		end := strings.IndexByte(rest[1:], '\'')
		if end < 0 {
			return 0, openQuote("'", i)
		}
		word.WriteString(rest[1 : 1+end])
		return end + 2, nil
	case '"':
		for j := 1; j < len(rest); j++ {
			switch {
			case rest[j] == '"':
				return j + 1, nil
			case strings.HasPrefix(rest[j:], "\\\n"):
				j++ // a shell joins the lines
				continue
			case rest[j] == '\\' && j+1 < len(rest) && strings.IndexByte("\"\\$`", rest[j+1]) >= 0:
				j++
			}
			word.WriteByte(rest[j])
		}
		return 0, openQuote(`"`, i)
	case '\\':
		switch {
		case len(rest) == 1:
			return 0, fault.Errorf(fault.Invalid, "command_unbalanced_quotes", "the command ends in a backslash")
		case rest[1] == '\n' || rest[1] == '\r':
			return 0, fault.Errorf(fault.Refused, "command_shell_syntax", "line break at position %d: one command only, on one line", i+2).With("position", i+2)
		}
		word.WriteByte(rest[1])
		return 2, nil
	}
	word.WriteByte(rest[0])
	return 1, nil
}

func openQuote(quote string, i int) error {
	return fault.Errorf(fault.Invalid, "command_unbalanced_quotes", "the quote %s at position %d is not closed", quote, i+1).With("position", i+1)
}
