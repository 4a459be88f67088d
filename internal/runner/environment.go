package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"roundtable/internal/fault"
	"roundtable/internal/sandbox"
)

// An environment is a command's variables by name.
type environment map[string]string

// environment builds a command's environment from nothing.
func (r *Runner) environment(s Spec, own scratch) environment {
	e := environment{
		"PATH":            strings.Join(r.o.Path, ":"),
		"HOME":            own.home,
		"TMPDIR":          own.temp,
		"XDG_CACHE_HOME":  own.cache,
		"XDG_CONFIG_HOME": filepath.Join(own.home, ".config"),
		"XDG_DATA_HOME":   filepath.Join(own.home, ".local", "share"),
		"XDG_STATE_HOME":  filepath.Join(own.home, ".local", "state"),
		"LANG":            "C.UTF-8",
		"TZ":              "UTC",
		"TERM":            "dumb",
		"CI":              "true", // test runners that would otherwise watch for changes end
		// Go downloads nothing, not even itself, reads no settings of the host and
		// asks no version control: the tree is a copy.
		"GOENV":       "off",
		"GOFLAGS":     "-buildvcs=false",
		"GOPROXY":     "off",
		"GOTOOLCHAIN": "local",
		"GOTELEMETRY": "off",
	}
	r.o.Go.variables(e, own)
	if !s.Network {
		// Fail at once, and not after minutes of tries.
		e["CARGO_NET_OFFLINE"] = "true"
		e["npm_config_offline"] = "true"
		e["PIP_NO_INDEX"] = "1"
	}
	maps.Copy(e, s.Env)
	return e
}

// list returns the environment as a process gets it, in a fixed order.
func (e environment) list() []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(e)) {
		list = append(list, name+"="+e[name])
	}
	return list
}

// digest returns the SHA-256 of all that the command could see of its
// surroundings and that is not the tree: two runs with the same digest differ
// in nothing this package knows of. What differs from run to run by design,
// the paths in places, is replaced by its name.
func (e environment) digest(places map[string]string, exe string, b sandbox.Backend) string {
	plain := environment{}
	for name, value := range e {
		for path, as := range places {
			value = strings.ReplaceAll(value, path, as)
		}
		plain[name] = value
	}
	text, err := json.Marshal(struct {
		Env        environment     `json:"env"`
		Executable string          `json:"executable"`
		Backend    sandbox.Backend `json:"backend"`
		OS, Arch   string
	}{plain, exe, b, runtime.GOOS, runtime.GOARCH})
	if err != nil {
		panic(err) // strings only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// The bounds of further variables.
const (
	maxEnv      = 64
	maxEnvValue = 32 << 10
)

// CheckEnv refuses, as a *fault.Error, variables that are not on the allow
// list, or that can not be variables.
func CheckEnv(env map[string]string, allow []string) error {
	if len(env) > maxEnv {
		return fault.Errorf(fault.TooLarge, "env_too_large", "%d variables; at most %d are allowed", len(env), maxEnv)
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		pointer := "/env/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		switch value := env[name]; {
		case !slices.Contains(allow, name):
			return fault.Errorf(fault.Refused, "env_not_allowed", "policy does not allow the variable %q", name).
				At(pointer, "not allowed").With("allowed", slices.Sorted(slices.Values(allow)))
		case !envName.MatchString(name):
			return fault.Errorf(fault.Invalid, "env_invalid", "%q cannot be a variable's name", name).At(pointer, "invalid name")
		case strings.ContainsRune(value, 0):
			return fault.Errorf(fault.Invalid, "env_invalid", "the value of %s contains a NUL byte", name).At(pointer, "contains NUL")
		case len(value) > maxEnvValue:
			return fault.Errorf(fault.TooLarge, "env_too_large", "the value of %s has %d bytes; at most %d are allowed", name, len(value), maxEnvValue).At(pointer, "too long")
		}
	}
	return nil
}
