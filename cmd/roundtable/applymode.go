package main

import (
	"context"
	"maps"
	"os"
	"slices"

	"roundtable/internal/fault"
	"roundtable/internal/policy"
	"roundtable/internal/repo"
)

// policyOf is the built-in policy with what the settings say of applying.
func policyOf(ctx context.Context, mode, branch string) (policy.Policy, error) {
	pol := policy.Default()
	if mode != "commit" {
		if branch != "" {
			return pol, fault.Errorf(fault.Invalid, "invalid_flag", "--apply-branch %s: it goes with --apply-mode commit", branch)
		}
		return pol, nil
	}
	pol.Apply = policy.Apply{Mode: mode, Branch: branch}
	if branch == "" {
		return pol, nil
	}
	ok, err := repo.CanNameBranch(ctx, branch)
	if err == nil && !ok {
		err = fault.Errorf(fault.Invalid, "invalid_flag", "--apply-branch %q: git takes it for no name of a branch; write the short name, such as main", branch)
	}
	return pol, err
}

// branchTrouble says why nothing can be committed in the folder at root as
// things are now; nil if it can, and in a folder without Git.
func branchTrouble(ctx context.Context, root, branch string) (err error) {
	scratch, err := os.MkdirTemp("", "roundtable-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // what is left there is of no meaning
	w, err := repo.Open(ctx, root, repo.Options{UserEnv: os.Environ(), Scratch: scratch, Commit: true, Branch: branch})
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // it has changed nothing
	return w.CheckBranch(ctx)
}

// warnOfBranches logs in which workspaces there is no branch to commit to. That
// keeps nobody from starting: it may be made later, and other workspaces go on.
func (a *app) warnOfBranches(ctx context.Context) {
	if !a.commits {
		return
	}
	roots, err := a.handler.Roots(ctx)
	if err != nil {
		a.log.WarnContext(ctx, "the branches to commit to could not be looked at", "err", err)
	}
	for _, id := range slices.Sorted(maps.Keys(roots)) {
		if err := branchTrouble(ctx, roots[id], a.branch); err != nil {
			a.log.WarnContext(ctx, "nothing can be committed in a workspace", "workspace_id", id, "code", fault.CodeOf(err), "err", err)
		}
	}
}
