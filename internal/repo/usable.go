package repo

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	"roundtable/internal/fault"
)

const unreadableIndex = "its index cannot be read"

// usable explains a call of git that failed: where the repository is gone, or
// cannot be read by git any more, the answer is a fault workspace_unavailable
// in place of the error. Everything else stays as it is.
func (w *Workspace) usable(ctx context.Context, failed error) error {
	if _, is := errors.AsType[*fault.Error](failed); failed == nil || is || ctx.Err() != nil || errors.Is(failed, exec.ErrNotFound) {
		return failed
	}
	if err := w.whole(ctx); err != nil {
		return err
	}
	return failed
}

// whole says what keeps git from working with the repository; nil if nothing
// does.
func (w *Workspace) whole(ctx context.Context) error {
	if err := w.Still(); err != nil || !w.Git() {
		return err
	}
	for _, look := range []struct {
		what string
		args []string
	}{
		{"its .git folder is not there, or is not one that git can use", []string{"rev-parse", "--git-dir"}},
		{"its HEAD, or the branch that HEAD stands at, cannot be read", []string{"symbolic-ref", "--quiet", "HEAD"}},
		{unreadableIndex, []string{"ls-files", "-z", "--", ":(top,literal)" + stateDir}},
	} {
		_, err := w.o.run(ctx, w.call(call{args: look.args, ok: []int{1}}))
		if _, exited := errors.AsType[*exec.ExitError](err); exited {
			return w.unusable(look.what, err)
		}
	}
	return nil
}

// unusable is what is wrong with a repository that was there.
func (w *Workspace) unusable(what string, err error) error {
	detail := err.Error()
	if _, said, ok := strings.Cut(detail, "fatal: "); ok {
		detail = said
	}
	return fault.Errorf(fault.Unavailable, "workspace_unavailable", "the Git repository of %s cannot be used: %s (%s); put it back, or mend it with git, and send the call again", w.root, what, detail)
}
