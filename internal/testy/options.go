package testy

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Options are what the command line of testy decides.
type Options struct {
	Protocol string // auto, v1 or v2
	Draft    string // alpha.3 or next
	Strict   bool
	Scratch  string // absolute directory of every path on the wire
	MaxLine  int    // bytes; 0 means the default
	Version  string // of the build
	faults   faultSet
}

// ErrHelp means that the arguments ask for the text Usage.
var ErrHelp = errors.New("help requested")

// ErrVersion means that the arguments ask for the version.
var ErrVersion = errors.New("version requested")

// ErrFaultList means that the arguments ask for the list of faults.
var ErrFaultList = errors.New("list of faults requested")

// Usage is the text for --help and after a wrong argument.
const Usage = `usage: testy [--protocol=auto|v1|v2] [--draft=alpha.3|next] [--strict]
             [--fault=NAME[=ARG][,NAME...]] [--scratch=DIR] [--help] [--version]

A deterministic ACP agent on stdin and stdout, for the tests of ACP clients.

  --protocol  auto (default): the client's initialize chooses v1 or draft v2
  --draft     alpha.3 (default) or next: the revision of draft v2
  --strict    ask a v1 client for nothing it did not offer; answer close and
              delete after the running prompt
  --fault     misbehave on purpose; --fault=list prints what there is
  --scratch   absolute directory used for every path on the wire (default: the
              system's temporary directory)

Prompts choose what happens: send "help" to see them.
`

// ParseArgs reads the command line. A flag and its value may also be two
// arguments. An error other than the three sentinels is a wrong argument.
func ParseArgs(args []string) (Options, error) {
	o := Options{Protocol: "auto", Draft: "alpha.3", Scratch: filepath.Join("/", "tmp")}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		switch name {
		case "--help", "--version", "--strict":
			if joined {
				return o, fmt.Errorf("%s takes no value", name)
			}
		case "--protocol", "--draft", "--fault", "--scratch":
			if !joined {
				if i++; i == len(args) {
					return o, fmt.Errorf("%s needs a value", name)
				}
				value = args[i]
			}
		}
		if err := o.set(name, value); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *Options) set(name, value string) (err error) {
	switch name {
	case "--help":
		return ErrHelp
	case "--version":
		return ErrVersion
	case "--strict":
		o.Strict = true
	case "--protocol":
		o.Protocol = value
		return oneOf(name, value, "auto", "v1", "v2")
	case "--draft":
		o.Draft = value
		return oneOf(name, value, "alpha.3", "next")
	case "--scratch":
		o.Scratch = value
		if !filepath.IsAbs(value) {
			return fmt.Errorf("--scratch must be absolute, not %q", value)
		}
	case "--fault":
		if value == "list" {
			return ErrFaultList
		}
		o.faults, err = parseFaults(value)
		return err
	default:
		return fmt.Errorf("unknown argument %q", name)
	}
	return nil
}

func oneOf(name, value string, allowed ...string) error {
	for _, a := range allowed {
		if a == value {
			return nil
		}
	}
	return fmt.Errorf("%s must be one of %s, not %q", name, strings.Join(allowed, ", "), value)
}

// PrintFaults writes a line for each fault there is.
func PrintFaults(w io.Writer) error {
	for _, f := range faultTable() {
		name := f.name
		if f.arg != "" {
			name += "[=" + f.arg + "]"
		}
		if _, err := fmt.Fprintf(w, "%-22s %s\n", name, f.doc); err != nil {
			return err
		}
	}
	return nil
}
