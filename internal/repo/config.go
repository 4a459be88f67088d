package repo

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"roundtable/internal/fault"
)

// A config is what the person's configuration says of ignored files and line
// ends, kept until one of the files that it comes from is another.
type config struct {
	sync.Mutex
	settings []setting
	files    []string // that it came from or may come from
	of       []stamp
	fixed    bool // no other file can come into it without one of these being changed
}

// configured returns the settings that are carried over from the person's
// configuration as it is now: which files are ignored and how line ends are
// stored.
func (w *Workspace) configured(ctx context.Context) ([]setting, error) {
	if !w.Git() {
		return nil, nil
	}
	c := &w.config
	c.Lock()
	defer c.Unlock()
	if c.fixed {
		if now, _, err := stamps(c.files); err != nil || slices.Equal(now, c.of) {
			return c.settings, err
		}
	}
	c.fixed = false
	before, settled, err := stamps(w.configFiles(nil))
	if err != nil {
		return nil, err
	}
	said, from, included, err := w.readConfig(ctx)
	if err != nil {
		return nil, err
	}
	if c.settings, err = w.carried(ctx, said); err != nil {
		return nil, err
	}
	c.files = w.configFiles(from)
	after, settledToo, err := stamps(c.files)
	if err != nil {
		return nil, err
	}
	c.of, c.fixed = after, settled && settledToo && !included && slices.Equal(before, after[:len(before)])
	return c.settings, nil
}

// configFiles returns the files that git reads its configuration from, whether
// they are there or not, and those that it has named.
func (w *Workspace) configFiles(named []string) []string {
	env := w.o.userVars()
	files := []string{filepath.Join(w.commonDir, "config"), filepath.Join(w.gitDir, "config.worktree")}
	if f, set := env["GIT_CONFIG_GLOBAL"]; set {
		files = append(files, f)
	} else {
		home, xdg := env["HOME"], env["XDG_CONFIG_HOME"]
		if xdg == "" && home != "" {
			xdg = filepath.Join(home, ".config")
		}
		if home != "" {
			files = append(files, filepath.Join(home, ".gitconfig"))
		}
		if xdg != "" {
			files = append(files, filepath.Join(xdg, "git", "config"))
		}
	}
	if f, set := env["GIT_CONFIG_SYSTEM"]; set {
		files = append(files, f)
	} else {
		files = append(files, w.system("gitconfig")...)
	}
	for _, f := range named {
		if !filepath.IsAbs(f) {
			f = filepath.Join(w.root, f)
		}
		if !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	return files
}

// system returns where this git may look for a file of the whole machine.
func (w *Workspace) system(name string) []string {
	prefix := filepath.Dir(filepath.Dir(w.execPath)) // of <prefix>/lib/git-core
	return []string{filepath.Join("/etc", name), filepath.Join(prefix, "etc", name)}
}

func (o Options) userVars() map[string]string {
	vars := map[string]string{}
	for _, kv := range o.UserEnv {
		k, v, _ := strings.Cut(kv, "=")
		vars[k] = v
	}
	return vars
}

// readConfig has git say the person's whole configuration: the last value of
// each key, the files it comes from, and whether any of them includes others.
func (w *Workspace) readConfig(ctx context.Context) (said map[string]string, from []string, included bool, err error) {
	out, err := w.git(ctx, call{user: true, bare: true, args: []string{"config", "--null", "--show-origin", "--list"}})
	if err != nil {
		return nil, nil, false, err
	}
	fields := records(out)
	if len(fields)%2 != 0 {
		return nil, nil, false, fmt.Errorf("git config answers %d fields", len(fields))
	}
	said = map[string]string{}
	for f := range slices.Chunk(fields, 2) {
		file, isFile := strings.CutPrefix(f[0], "file:")
		if !isFile {
			continue // what every call is given
		}
		key, value, set := strings.Cut(f[1], "\n")
		if !set {
			value = "true"
		}
		said[key] = value
		from = append(from, file)
		included = included || strings.HasPrefix(key, "include.") || strings.HasPrefix(key, "includeif.")
	}
	slices.Sort(from)
	return said, slices.Compact(from), included, nil
}

// carried makes the settings of what the configuration says.
func (w *Workspace) carried(ctx context.Context, said map[string]string) ([]setting, error) {
	var all []setting
	for _, s := range []setting{{"core.excludesFile", "ignore"}, {"core.attributesFile", "attributes"}} {
		value, set := said[strings.ToLower(s.name)]
		switch {
		case !set:
			value = w.defaultFile(s.value)
		case strings.HasPrefix(value, "~") || strings.HasPrefix(value, "%"): // git knows whose home it is
			out, err := w.git(ctx, call{user: true, bare: true, args: []string{"config", "--null", "--type=path", "--get", s.name}, ok: []int{1}})
			if err != nil {
				return nil, err
			}
			value = strings.TrimSuffix(string(out), "\x00")
		}
		all = append(all, setting{s.name, value})
	}
	if value, set := said["core.autocrlf"]; set {
		value, err := autocrlf(value)
		if err != nil {
			return nil, err
		}
		all = append(all, setting{"core.autocrlf", value})
	}
	if value, set := said["core.eol"]; set {
		all = append(all, setting{"core.eol", strings.ToLower(value)})
	}
	return all, nil
}

// autocrlf spells a value in one way: true, false or input.
func autocrlf(value string) (string, error) {
	switch v := strings.ToLower(value); v {
	case "input", "true", "false":
		return v, nil
	case "yes", "on":
		return "true", nil
	case "no", "off", "":
		return "false", nil
	default:
		n, err := strconv.Atoi(v)
		if err != nil {
			return "", fault.Errorf(fault.Invalid, "workspace.not_git", "the setting core.autocrlf is %q, which git does not know", value)
		}
		return strconv.FormatBool(n != 0), nil
	}
}

// settingIn returns what settings say; the last counts.
func settingIn(settings []setting, name string) string {
	for _, s := range slices.Backward(settings) {
		if s.name == name {
			return s.value
		}
	}
	return ""
}

// defaultFile is where git looks for a file of the person's when no setting
// names one.
func (w *Workspace) defaultFile(name string) string {
	vars := w.o.userVars()
	switch {
	case vars["XDG_CONFIG_HOME"] != "":
		return filepath.Join(vars["XDG_CONFIG_HOME"], "git", name)
	case vars["HOME"] != "":
		return filepath.Join(vars["HOME"], ".config", "git", name)
	}
	return "/dev/null"
}
