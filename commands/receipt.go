package commands

import (
	"context"
	"errors"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/attest"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// A Signer signs receipts with the key of the installation.
type Signer interface {
	Sign(attest.Receipt) ([]byte, error)
	Public() ([]attest.PublicKey, error)
}

// attestOps lists the questions about what can be shown elsewhere: keys, and
// what is kept to take a transaction back.
func (h *Handler) attestOps() []op.Op {
	return []op.Op{
		question(h, op.Op{Name: "key.list", Route: "GET " + server + "/keys", Out: op.ListOf[wire.PublicKey]("keys"),
			Doc: "List the public keys that receipts are checked with, the one in use first."}, h.keys),
		question(h, op.Op{Name: "transaction.rollback", Route: "GET " + ws + "/transactions/{transaction_id}/rollback", Out: op.OneOf[wire.Rollback]("rollback", nil),
			Doc: "Say what is kept to take a transaction back: each path before and after, whether its bytes are there, the journal, and the reverse patch to read."}, h.rollback),
	}
}

// keys lists the public keys.
func (h *Handler) keys(ctx context.Context, _ op.Call, _ struct{}) (op.Answer, error) {
	all, err := h.Signer.Public()
	if err != nil {
		return op.Answer{}, err
	}
	out := []wire.PublicKey{}
	for _, k := range all {
		out = append(out, wire.PublicKey{ID: k.ID, Algorithm: attest.Algorithm, PEM: k.PEM(), Current: k.Current})
	}
	at, _, err := h.Log.Head(ctx)
	return op.Answer{Name: "keys", Value: out, Position: at, List: true}, err
}

// ReceiptOp is the question for the signed receipt of an applied transaction. A
// transport serves the bytes as they are.
func (h *Handler) ReceiptOp() op.Op {
	return question(h, op.Op{Name: "transaction.receipt", Route: "GET " + ws + "/transactions/{transaction_id}/receipt",
		Doc: "Fetch the signed receipt of an applied transaction, which can be checked without a server."},
		func(ctx context.Context, c op.Call, in transactionQuestion) (op.File, error) {
			u := h.question(c.Who, c.Workspace)
			t, err := u.transaction(ctx, in.Transaction)
			if err != nil {
				return nil, err
			}
			return h.receipt(ctx, t)
		})
}

// receipt makes and signs the receipt of an applied transaction, from nothing
// but the log.
func (h *Handler) receipt(ctx context.Context, t domain.Transaction) ([]byte, error) {
	if t.State != domain.TxApplied {
		return nil, fault.Errorf(fault.Conflict, "transaction_not_applied", "%s is %s: a receipt says what was applied, and there is none of anything else", t.ID, t.State).
			With("state", t.State).Then("transaction.get", map[string]any{"transaction_id": t.ID}, "you", "see how far it is")
	}
	past, err := h.history(ctx, t)
	if err != nil {
		return nil, err
	}
	r, err := attest.Of(past)
	if err != nil {
		return nil, err
	}
	data, err := h.Signer.Sign(r)
	if refused, ok := errors.AsType[*attest.Refusal](err); ok {
		return nil, fault.Errorf(fault.Conflict, "receipt_not_possible", "nothing is signed that could not be checked, and of %s that would be so: %s", t.ID, refused.Detail)
	}
	return data, err
}

func (h *Handler) history(ctx context.Context, t domain.Transaction) (past attest.History, err error) {
	if past.Transaction, err = h.Log.Stream(ctx, events.TransactionStream(t.ID), 0); err != nil {
		return past, err
	}
	if past.Proposal, err = h.Log.Stream(ctx, events.ProposalStream(t.Proposal), 0); err != nil {
		return past, err
	}
	added, err := h.Log.Stream(ctx, events.WorkspacesStream, 0)
	if err != nil {
		return past, err
	}
	for _, e := range added {
		if w, ok := e.Payload.(events.WorkspaceAdded); ok && w.Workspace == t.Workspace {
			past.Workspace = w
		}
	}
	for _, e := range past.Transaction {
		if _, ok := e.Payload.(events.TransactionApplied); !ok {
			continue
		}
		rows, err := h.Log.Since(ctx, e.Position-1, 1)
		if err != nil {
			return past, err
		}
		if len(rows) == 1 && rows[0].Position == e.Position {
			past.Applied = rows[0]
		}
	}
	return past, nil
}

// changedBy returns what a transaction changed, or was about to: of one that is
// not applied the journal says it, as far as it is there.
func (u *unit) changedBy(ctx context.Context, t domain.Transaction, root string) ([]events.ChangedPath, error) {
	files := t.Files
	if t.State == domain.TxApplying || t.State == domain.TxFailed {
		var err error
		if files, err = u.h.World.Planned(ctx, root, t.ID, t.Attempt); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fault.Errorf(fault.Conflict, "no_rollback_artifact", "%s is %s and has changed nothing, so nothing is kept to take it back", t.ID, t.State).
			With("state", t.State).Then("transaction.recovery", map[string]any{"transaction_id": t.ID}, "you", "see what lies there")
	}
	return files, nil
}

// rollback describes what is kept to take a transaction back.
func (h *Handler) rollback(ctx context.Context, c op.Call, in transactionQuestion) (op.Answer, error) {
	u := h.question(c.Who, c.Workspace)
	t, err := u.transaction(ctx, in.Transaction)
	if err != nil {
		return op.Answer{}, err
	}
	root, err := u.root(ctx)
	if err != nil {
		return op.Answer{}, err
	}
	files, err := u.changedBy(ctx, t, root)
	if err != nil {
		return op.Answer{}, err
	}
	out := wire.Rollback{Transaction: t.ID, Proposal: t.Proposal, State: t.State, Attempt: t.Attempt, Complete: true, Missing: []string{}}
	lies, err := h.World.Lies(ctx, root, t.ID, t.Attempt, files)
	if err != nil {
		return op.Answer{}, err
	}
	out.Journal, out.Repository = lies.Journal, lies.Repository
	if out.Files, out.Reverse, err = h.World.Artifact(ctx, root, files); err != nil {
		return op.Answer{}, err
	}
	for i, f := range out.Files {
		if f.Before.Stored == "yes" {
			out.Files[i].Call = &wire.ImageCall{Op: "transaction.before_image", Args: map[string]string{"transaction_id": t.ID, "path": f.Path}}
		}
		if f.Before.Code != "" || f.After.Code != "" {
			out.Complete, out.Missing = false, append(out.Missing, f.Path)
		}
	}
	if t.State == domain.TxApplied {
		if err := h.attested(ctx, t, &out); err != nil {
			return op.Answer{}, err
		}
	}
	at, _, err := h.Log.Head(ctx)
	return op.Answer{Name: "rollback", Value: out, Position: at}, err
}

// attested takes over what the receipt says. That there can be none keeps
// nobody from reading what is kept.
func (h *Handler) attested(ctx context.Context, t domain.Transaction, out *wire.Rollback) error {
	past, err := h.history(ctx, t)
	if err != nil {
		return err
	}
	r, err := attest.Of(past)
	if err != nil {
		return err
	}
	out.BeforePaths, out.BeforeTree, out.AfterPaths, out.AfterTree = r.Before.PathsDigest, r.Before.Tree, r.After.PathsDigest, r.After.Tree
	data, err := h.receipt(ctx, t)
	if fault.CodeOf(err) == "receipt_not_possible" {
		return nil
	}
	out.Receipt = attest.Digest(data)
	return err
}

// An imageQuestion names one path of a transaction.
type imageQuestion struct {
	Transaction string `json:"transaction_id"`
	Path        string `json:"path" jsonschema:"as the rollback artifact has it"`
}

// MaxImage bounds the bytes of a before-image that is served.
const MaxImage = 64 << 20

// An Image is the bytes of one path before a transaction.
type Image struct {
	Digest string `json:"sha256"`
	Data   []byte `json:"data"`
}

// ImageOp is the question for the exact bytes that lay at a path before a
// transaction: for whoever may read the tree. A transport serves them as they
// are.
func (h *Handler) ImageOp() op.Op {
	return question(h, op.Op{Name: "transaction.before_image", Route: "GET " + ws + "/transactions/{transaction_id}/rollback/raw",
		Doc: "Fetch the exact bytes that one path held before a transaction; of a link, its text."},
		func(ctx context.Context, c op.Call, in imageQuestion) (Image, error) {
			u := h.question(c.Who, c.Workspace)
			t, err := u.transaction(ctx, in.Transaction)
			if err != nil {
				return Image{}, err
			}
			root, err := u.root(ctx)
			if err != nil {
				return Image{}, err
			}
			files, err := u.changedBy(ctx, t, root)
			if err != nil {
				return Image{}, err
			}
			return h.image(ctx, t, files, in.Path)
		})
}

func (h *Handler) image(ctx context.Context, t domain.Transaction, files []events.ChangedPath, path string) (Image, error) {
	for _, f := range files {
		switch {
		case f.Path != path:
			continue
		case f.Before.SHA256 == "":
			return Image{}, fault.Errorf(fault.NotFound, "no_before_image", "before %s nothing with bytes lay at this path: it was %s", t.ID, f.Before.Kind).At("/path", "was "+f.Before.Kind)
		case f.Before.Size > MaxImage:
			return Image{}, fault.Errorf(fault.TooLarge, "image_too_large", "the image has %d bytes, and at most %d are served; it is blob %s of the data folder", f.Before.Size, MaxImage, f.Before.SHA256)
		}
		data, err := h.World.Kept(ctx, f.Before.SHA256)
		if err != nil {
			err = errors.Join(fault.Errorf(fault.Unavailable, "state.artifact_missing", "what lay at this path before %s is no longer in the blob store, or is damaged there: blob %s", t.ID, f.Before.SHA256), err)
		}
		return Image{f.Before.SHA256, data}, err
	}
	return Image{}, fault.Errorf(fault.NotFound, "no_before_image", "%s does not touch this path", t.ID).At("/path", "is not one of its paths").
		Then("transaction.rollback", map[string]any{"transaction_id": t.ID}, "you", "see which there are")
}
