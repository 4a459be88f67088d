package repo

// ForgetExchange makes the workspace go on as on a file system whose rename
// flags do not work.
func (w *Workspace) ForgetExchange() {
	w.probe.Lock()
	defer w.probe.Unlock()
	exact := false
	w.exact = &exact
}

// WalkComponents makes the workspace go on as on a kernel without openat2.
func (w *Workspace) WalkComponents() { w.at.walk.Store(true) }

// Lax makes the workspace leave out the syncs of staged files, and of markers
// that it finds.
func (w *Workspace) Lax() { w.lax = true }

// Late makes an apply lock the index only after the branch has moved.
func (w *Workspace) Late() { w.late = true }

// Blind makes recovery look at no branch.
func (w *Workspace) Blind() { w.blind = true }

// Origin is what a transaction's folder at dir would write into its journal.
func (w *Workspace) Origin(dir string) (string, error) {
	f, err := openAnchor(dir)
	if err != nil {
		return "", err
	}
	defer f.f.Close()
	return w.origin(f.fd())
}
