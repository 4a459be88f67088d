package main

import (
	"bytes"
	"net/http"
	"time"

	"roundtable/api"
	"roundtable/commands"
	"roundtable/internal/fault"
)

// rawPatch serves a revision's patch as it was sent, byte for byte.
func (a *app) rawPatch(w http.ResponseWriter, r *http.Request, q api.Request) error {
	v, err := a.handler.RawPatchOp().Run(r.Context(), q.Call, q.In)
	if err != nil {
		return err
	}
	p, ok := v.(commands.RawPatch)
	if !ok {
		return fault.Errorf(fault.Internal, "internal", "a patch was read as %T", v)
	}
	w.Header().Set("Content-Type", rawPatchMedia)
	w.Header().Set("Content-Disposition", `attachment; filename="`+p.Digest[:12]+`.patch"`)
	w.Header().Set("ETag", `"`+p.Digest+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(p.Data))
	return nil
}

const rawPatchMedia = "text/x-patch"
