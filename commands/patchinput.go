package commands

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"unicode/utf8"

	"roundtable/internal/fault"
)

// A PatchInput is a patch in an input: as JSON text, in base64, or as the raw
// body. A string holds any bytes here.
type PatchInput struct {
	Patch     string   `json:"patch,omitempty" jsonschema:"a Git-style unified diff" maxlen:"10485760"`
	Base64    string   `json:"patch_base64,omitempty" jsonschema:"or in base64: any bytes" maxlen:"10485760"`
	SHA256    string   `json:"patch_sha256,omitempty" jsonschema:"of the patch's bytes: refused if others arrive"`
	Bytes     *int64   `json:"patch_bytes,omitempty" jsonschema:"likewise, their number" min:"0"`
	Resources []string `json:"affected_resources,omitempty" jsonschema:"file:<path> or directory:<path>; touched paths outside get file:<path>"`
	Base      string   `json:"base_revision,omitempty" jsonschema:"the commit the patch was made on"`
}

// SetBody takes the patch as raw bytes.
func (p *PatchInput) SetBody(b []byte) { p.Patch = string(b) }

// data gives the patch's bytes: they are what the sender says of them.
func (p PatchInput) data() ([]byte, error) {
	data := []byte(p.Patch)
	switch {
	case p.Patch+p.Base64 == "":
		return nil, fault.Errorf(fault.Invalid, "missing_field", "a patch is needed: as field patch, as patch_base64, or as a text/x-patch body").At("/patch", "required")
	case p.Patch != "" && p.Base64 != "":
		return nil, fault.Errorf(fault.Invalid, "invalid_field", "the patch was sent twice: send it as patch, as patch_base64, or as the body").At("/patch_base64", "not with another patch")
	case p.Base64 != "":
		var err error
		if data, err = base64.StdEncoding.Strict().DecodeString(p.Base64); err != nil {
			return nil, fault.Errorf(fault.Invalid, "invalid_field", "patch_base64 cannot be read: %v", err).At("/patch_base64", "must be base64 with the standard alphabet and padding (RFC 4648, section 4)")
		}
	}
	return data, p.arrived(data)
}

// arrived holds the patch against its digest and length, where the sender
// gave them.
func (p PatchInput) arrived(data []byte) error {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	f := fault.Errorf(fault.Refused, "patch_not_as_sent", "the patch that arrived has %d bytes with SHA-256 %s, which is not what its sender says: it was cut short or changed on its way; send it again, as patch_base64 or a text/x-patch body", len(data), digest).
		With("patch_sha256", digest).With("patch_bytes", len(data))
	wrong := false
	if raw, err := hex.DecodeString(p.SHA256); p.SHA256 != "" && (err != nil || len(raw) != sha256.Size || hex.EncodeToString(raw) != p.SHA256) {
		return fault.Errorf(fault.Invalid, "invalid_field", "patch_sha256 must be a SHA-256 in lower-case hexadecimal").At("/patch_sha256", "must be 64 digits of 0-9a-f")
	} else if p.SHA256 != "" && p.SHA256 != digest {
		f, wrong = f.At("/patch_sha256", "is not that of the patch that arrived"), true
	}
	if p.Bytes != nil && *p.Bytes != int64(len(data)) {
		f, wrong = f.At("/patch_bytes", "is not the number that arrived"), true
	}
	if !wrong {
		return nil
	}
	return f
}

// text is the input as JSON text can have it, so that two patches that differ
// are two inputs.
func (p PatchInput) text() PatchInput {
	if !utf8.ValidString(p.Patch) && p.Base64 == "" {
		p.Patch, p.Base64 = "", base64.StdEncoding.EncodeToString([]byte(p.Patch))
	}
	return p
}
