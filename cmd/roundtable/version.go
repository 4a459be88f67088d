package main

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"roundtable/internal/fault"
	"roundtable/internal/runner"
)

// version names the build: the module's version, else the commit it was built
// from, else "devel".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

// logger writes lines for people to the terminal's error output.
func logger(t terminal, level string) *slog.Logger {
	var l slog.Level
	if l.UnmarshalText([]byte(level)) != nil {
		l = slog.LevelWarn
	}
	return slog.New(slog.NewTextHandler(t.err, &slog.HandlerOptions{Level: l}))
}

// jsonLogger writes lines for programs.
func jsonLogger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fault.Errorf(fault.Invalid, "invalid_flag", "--log-level: %v", err)
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})), nil
}

// searchPath lists the folders in which test commands are looked up: those of
// the service's own PATH that are absolute.
func searchPath() (dirs []string) {
	for _, d := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(d) && !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	if len(dirs) == 0 {
		return runner.DefaultPath()
	}
	return dirs
}

// goCaches finds the host's folders by which tests of Go projects work without
// a network. Each that is not there is left out.
func goCaches() runner.GoCaches {
	var c runner.GoCaches
	out, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		return c
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3 {
		return c
	}
	for i, to := range []*string{&c.Root, &c.ModCache, &c.BuildCache} {
		if info, err := os.Stat(lines[i]); err == nil && info.IsDir() && filepath.IsAbs(lines[i]) {
			*to = lines[i]
		}
	}
	return c
}
