package events

// WorkspaceForeignChange means: paths were found in another state than the one
// that a transaction left there, an earlier look found, or a claim or a
// revision was made on: somebody changed them behind the service's back. Who is
// not known: the envelope's actor is whoever ran into it. The states found are
// what is known from now on. One append may hold several, of many paths.
type WorkspaceForeignChange struct {
	Workspace   string        `json:"workspace_id"`
	FoundAt     string        `json:"found_at"`                 // claim, validate, apply, apply_conflict or doctor
	Transaction string        `json:"transaction_id,omitempty"` // whose apply met it
	Head        string        `json:"head,omitempty"`           // the commit of HEAD when it was found; none in a plain folder
	Paths       []ForeignPath `json:"paths"`
}

// A ForeignPath is a path that somebody changed behind the service's back.
type ForeignPath struct {
	Path string    `json:"path"`
	Was  PathState `json:"was"`
	Is   PathState `json:"is"`
	// Held is a version that somebody wrote into the file that an apply had just
	// replaced: it does not lie at the path, and is kept until a person decides.
	Held *PathState `json:"held,omitempty"`
}

func (e WorkspaceForeignChange) Stream() Stream { return TreeStream(e.Workspace) }
