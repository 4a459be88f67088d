package main

import (
	"bytes"
	"net/http"
	"path/filepath"
	"time"

	"roundtable/api"
	"roundtable/commands"
	"roundtable/internal/attest"
	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// keysFolder is where the keys of an installation lie.
func keysFolder(data string) string { return filepath.Join(data, "keys") }

// signing makes the key that receipts are signed with, or reads it. A program
// that could sign nothing does not begin to serve.
func (a *app) signing() error {
	if err := a.ring.Ready(); err != nil {
		return fault.Errorf(fault.Conflict, "signing_key_unusable", "the key that receipts are signed with cannot be used: %v", err)
	}
	return nil
}

// receipt serves a transaction's signed receipt, the same bytes each time.
func (a *app) receipt(w http.ResponseWriter, r *http.Request, q api.Request) error {
	v, err := a.handler.ReceiptOp().Run(r.Context(), q.Call, q.In)
	if err != nil {
		return err
	}
	data, ok := v.(op.File)
	if !ok {
		return fault.Errorf(fault.Internal, "internal", "a receipt was read as %T", v)
	}
	w.Header().Set("Content-Type", attest.EnvelopeMedia)
	w.Header().Set("ETag", `"`+attest.Digest(data)+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	return nil
}

const imageMedia = "application/octet-stream"

// beforeImage serves the bytes that a path held before a transaction.
func (a *app) beforeImage(w http.ResponseWriter, r *http.Request, q api.Request) error {
	v, err := a.handler.ImageOp().Run(r.Context(), q.Call, q.In)
	if err != nil {
		return err
	}
	im, ok := v.(commands.Image)
	if !ok {
		return fault.Errorf(fault.Internal, "internal", "an image was read as %T", v)
	}
	w.Header().Set("Content-Type", imageMedia)
	w.Header().Set("Content-Disposition", `attachment; filename="`+im.Digest[:12]+`"`)
	w.Header().Set("ETag", `"`+im.Digest+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(im.Data))
	return nil
}
