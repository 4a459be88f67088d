package patch

// Options say what is refused beyond the grammar. The zero value has the
// defaults: Git's SHA-1 ids checked, portable names only, offsets and symlinks
// that stay inside allowed, findings in text not refused.
type Options struct {
	Strip      *int   // components to take from each name; nil: found from the patch and the tree
	IgnoreOID  bool   // strict_oid off: a text section may name another before-blob
	StrictText bool   // findings in added lines refuse
	AnyNames   bool   // portable_names off
	UTF8Names  bool   // names that are not UTF-8 are refused
	NoOffsets  bool   // every hunk must stand at its stated line
	NoSymlinks bool   // a new or changed symlink is refused
	SHA256     bool   // the repository's object ids are SHA-256
	GitDir     string // the repository's Git folder where it lies in the tree under another name

	MaxPatchBytes int // default 32 MiB, at most 1 GiB
	MaxFiles      int // sections; default 2,000
	MaxFileBytes  int // one file, before or after; default 32 MiB, at most 1 GiB
	MaxTotalBytes int // all before- and after-images of one patch; default 256 MiB

	keepReverse bool // of binary sections, for Undo
}

const (
	mib        = 1 << 20
	maxBytes   = 1 << 30 // offsets within a file are kept in 32 bits
	maxPath    = 1024
	maxDepth   = 64
	maxName    = 255
	maxHops    = 16
	maxTarget  = 4095 // what Linux takes as the text of a link
	stateDir   = ".roundtable"
	maxHunkNum = 1 << 40
)

func (o Options) withDefaults() Options {
	set := func(v *int, def, most int) {
		if *v <= 0 {
			*v = def
		}
		*v = min(*v, most)
	}
	set(&o.MaxPatchBytes, 32*mib, maxBytes)
	set(&o.MaxFiles, 2000, maxBytes)
	set(&o.MaxFileBytes, 32*mib, maxBytes)
	set(&o.MaxTotalBytes, 256*mib, 1<<40)
	return o
}

// oidLen is the length of a full object id in hex digits.
func (o Options) oidLen() int {
	if o.SHA256 {
		return 64
	}
	return 40
}
