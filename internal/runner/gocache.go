package runner

import (
	"path/filepath"

	"roundtable/internal/sandbox"
)

// GoCaches are the host's directories that commands of Go may use, so that
// they work without a network and do not compile the standard library each
// time. Each may be empty; all are absolute.
type GoCaches struct {
	Root     string // GOROOT, if it is not among the system's files; read-only
	ModCache string // GOMODCACHE; read-only

	// BuildCache is the GOCACHE of earlier runs. Where an overlay can be made,
	// commands see it and what they add is their own; elsewhere they begin with
	// an empty cache of their own, unless Shared. A shared cache is written by
	// every command: then one can leave another wrong results.
	BuildCache string
	Shared     bool
}

// paths returns where the directories are kept.
func (g *GoCaches) paths() []*string { return []*string{&g.Root, &g.ModCache, &g.BuildCache} }

// overlay reports whether the build cache needs one.
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
func (g GoCaches) cacheInto(s *sandbox.Spec, b sandbox.Backend, own scratch) {
	switch {
	case g.BuildCache == "":
	case g.Shared:
		s.ReadWrite = append(s.ReadWrite, g.BuildCache)
	case b.Overlays():
		s.Overlays = append(s.Overlays, sandbox.Overlay{
			Lower: g.BuildCache, Scratch: filepath.Join(own.dir, "build"), At: g.buildCache(own),
		})
	}
}
