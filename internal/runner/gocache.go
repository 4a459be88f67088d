package runner

import (
	"fmt"
	"path/filepath"
	"strings"

	"roundtable/internal/sandbox"
)

// GoCaches are the host's directories that commands of Go may use, so that
// they work without a network and do not compile the standard library each
// time. Each may be empty; all are absolute.
type GoCaches struct {
	Root     string // GOROOT, if it is not among the system's files; read-only
	ModCache string // GOMODCACHE; read-only

	// BuildCache is the GOCACHE of earlier runs. Commands see what it has, and
	// what they add is their own and gone with them, unless Shared: a shared
	// cache is written by every command, and one can leave another wrong results.
	BuildCache string
	Shared     bool
}

// paths returns where the directories are kept.
func (g *GoCaches) paths() []*string { return []*string{&g.Root, &g.ModCache, &g.BuildCache} }

// overlay reports whether the build cache is best shown by one.
func (g GoCaches) overlay() bool { return g.BuildCache != "" && !g.Shared }

// readOnly lists what is to be mounted read-only.
func (g GoCaches) readOnly() []string {
	var list []string
	for _, dir := range []string{g.Root, g.ModCache} {
		if dir != "" {
			list = append(list, dir)
		}
	}
	return list
}

// buildCache returns where the command finds its build cache.
func (g GoCaches) buildCache(own scratch) string {
	if g.BuildCache != "" && g.Shared {
		return g.BuildCache
	}
	return filepath.Join(own.cache, "go-build")
}

// variables sets what tells Go where its directories are.
func (g GoCaches) variables(e environment, own scratch) {
	e["GOPATH"] = filepath.Join(own.home, "go")
	e["GOCACHE"] = g.buildCache(own)
	if g.ModCache != "" {
		e["GOMODCACHE"] = g.ModCache
	}
	if g.Root != "" {
		e["GOROOT"] = g.Root
	}
}

// cacheInto gives the command its build cache.
func (g GoCaches) cacheInto(e environment, s *sandbox.Spec, b sandbox.Backend, own scratch) error {
	switch {
	case g.BuildCache == "":
	case g.Shared:
		s.ReadWrite = append(s.ReadWrite, g.BuildCache)
	case b.Overlays():
		s.Overlays = append(s.Overlays, sandbox.Overlay{
			Lower: g.BuildCache, Scratch: filepath.Join(own.dir, "build"), At: g.buildCache(own),
		})
	case b.Level().AtLeast(sandbox.Landlock):
		self, err := sandbox.Self(b)
		if err != nil {
			return fmt.Errorf("build cache: %w", err)
		}
		s.ReadOnly = append(s.ReadOnly, g.BuildCache)
		e[cacheProgVar] = quoted(self, cacheArg, g.BuildCache, g.buildCache(own))
	}
	// With less, nothing would keep a command from writing to the host's cache:
	// it begins with an empty one of its own.
	return nil
}

// quoted joins words as the go command splits them.
func quoted(words ...string) string {
	for i, w := range words {
		if strings.ContainsAny(w, " \t\r\n'\"") {
			quote := "'"
			if strings.Contains(w, "'") {
				quote = `"`
			}
			words[i] = quote + w + quote
		}
	}
	return strings.Join(words, " ")
}
