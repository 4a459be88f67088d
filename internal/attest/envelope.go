package attest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// PayloadType is what every envelope of a receipt says of its payload.
const PayloadType = "application/vnd.in-toto+json"

// EnvelopeMedia is the content type of an envelope.
const EnvelopeMedia = "application/vnd.dsse.envelope.v1+json"

// Bounds of what is read and signed.
const (
	MaxEnvelope   = 16 << 20 // bytes
	maxSignatures = 16
)

// seal signs a payload: the envelope is one line of JSON.
func (k *key) seal(payload []byte) ([]byte, error) {
	s, err := dsse.NewEnvelopeSigner(k)
	if err != nil {
		return nil, err
	}
	e, err := s.SignPayload(context.Background(), PayloadType, payload)
	if err != nil {
		return nil, err
	}
	out, err := canonical(e)
	if err == nil && len(out) > MaxEnvelope {
		err = refuse(TooLarge, "the receipt would have %d bytes, and at most %d are read", len(out), MaxEnvelope)
	}
	return out, err
}

// Digest is the SHA-256 of a receipt's file, in lowercase hex.
func Digest(file []byte) string {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}

// canonical writes v as one line of JSON, its text as it is.
func canonical(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// open checks an envelope's signatures with keys that the caller trusts, and
// returns what was signed and by which of them. Each signature that says it is
// by one of them must be, and at least one must be there; those by other keys
// are not looked at and named in others.
func open(file []byte, trusted []PublicKey) (payload []byte, by string, others []string, err error) {
	e, err := parseEnvelope(file)
	if err != nil {
		return nil, "", nil, err
	}
	if len(trusted) == 0 {
		return nil, "", nil, refuse(NoTrustedKey, "not verified: no trusted key. The receipt says that it is signed by %s; get that key from whoever runs the installation, not from the file", claimed(e))
	}
	for _, s := range e.Signatures {
		k, known := trustedKey(trusted, s.KeyID)
		if !known && s.KeyID != "" {
			others = append(others, s.KeyID)
			continue
		}
		candidates := []PublicKey{k}
		if !known {
			candidates = trusted // a signature need not say by whom it is
		}
		id, body, err := verifyOne(dsse.Envelope{PayloadType: e.PayloadType, Payload: e.Payload, Signatures: []dsse.Signature{s}}, candidates)
		if err != nil {
			return nil, "", nil, refuse(BadSignature, "the signature that is said to be by %s is not one of what the file holds: the file was altered, or signed by somebody else", orNobody(s.KeyID))
		}
		payload, by = body, id
	}
	if payload == nil {
		return nil, "", nil, refuse(OtherKey, "not verified: it is signed by %s, and by none of the keys that were given", claimed(e))
	}
	return payload, by, others, nil
}

func verifyOne(e dsse.Envelope, keys []PublicKey) (id string, payload []byte, err error) {
	var vs []dsse.Verifier
	for _, k := range keys {
		vs = append(vs, k)
	}
	v, err := dsse.NewEnvelopeVerifier(vs...)
	if err != nil {
		return "", nil, err
	}
	accepted, payload, err := v.VerifyAndDecode(context.Background(), &e)
	if err != nil {
		return "", nil, err
	}
	if len(accepted) != 1 || payload == nil {
		return "", nil, errors.New("no signature was accepted")
	}
	return accepted[0].KeyID, payload, nil
}

func trustedKey(trusted []PublicKey, id string) (PublicKey, bool) {
	for _, k := range trusted {
		if k.ID == id {
			return k, true
		}
	}
	return PublicKey{}, false
}

func claimed(e dsse.Envelope) string {
	var ids []string
	for _, s := range e.Signatures {
		ids = append(ids, orNobody(s.KeyID))
	}
	return strings.Join(ids, ", ")
}

func orNobody(id string) string {
	if id == "" {
		return "a key that it does not name"
	}
	if len(id) > 80 {
		id = id[:80]
	}
	return id
}

// parseEnvelope reads an envelope strictly: exactly its fields, each once,
// base64 as it is written and not as it could be.
func parseEnvelope(file []byte) (e dsse.Envelope, err error) {
	if len(file) > MaxEnvelope {
		return e, refuse(TooLarge, "it has more than %d bytes", MaxEnvelope)
	}
	if err := strictJSON(file); err != nil {
		return e, refuse(Malformed, "it is no DSSE envelope: %v", err)
	}
	var fields struct {
		PayloadType *string                      `json:"payloadType"`
		Payload     *string                      `json:"payload"`
		Signatures  []map[string]json.RawMessage `json:"signatures"`
	}
	if err := exactly(file, &fields, "payloadType", "payload", "signatures"); err != nil {
		return e, refuse(Malformed, "it is no DSSE envelope: %v", err)
	}
	if fields.PayloadType == nil || fields.Payload == nil {
		return e, refuse(Malformed, "it is no DSSE envelope: it lacks payload or payloadType")
	}
	e.PayloadType, e.Payload = *fields.PayloadType, *fields.Payload
	if e.PayloadType != PayloadType {
		return e, refuse(PayloadKind, "it holds a %.80q, and a receipt is a %s", e.PayloadType, PayloadType)
	}
	if !plainBase64(e.Payload) {
		return e, refuse(Malformed, "its payload is no base64 in the standard form")
	}
	for _, s := range fields.Signatures {
		sig, err := parseSignature(s)
		if err != nil {
			return e, err
		}
		e.Signatures = append(e.Signatures, sig)
	}
	if n := len(e.Signatures); n == 0 || n > maxSignatures {
		return e, refuse(NoSignature, "it has %d signatures; 1 to %d are looked at", n, maxSignatures)
	}
	return e, nil
}

func parseSignature(fields map[string]json.RawMessage) (s dsse.Signature, err error) {
	for name, v := range fields {
		var into *string
		switch name {
		case "keyid":
			into = &s.KeyID
		case "sig":
			into = &s.Sig
		default:
			return s, refuse(Malformed, "a signature has a field %.40q, which is not one of a signature", name)
		}
		if err := json.Unmarshal(v, into); err != nil {
			return s, refuse(Malformed, "a signature's %s is no text", name)
		}
	}
	if s.Sig == "" || !plainBase64(s.Sig) {
		return s, refuse(Malformed, "a signature is no base64 in the standard form")
	}
	return s, nil
}

// plainBase64 reports whether s is what the standard encoding writes: no line
// breaks, no other alphabet, no bits left over.
func plainBase64(s string) bool {
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	return err == nil && base64.StdEncoding.EncodeToString(b) == s
}

// exactly decodes one object whose fields are among those named, letter for
// letter.
func exactly(data []byte, into any, names ...string) error {
	var have map[string]json.RawMessage
	if err := json.Unmarshal(data, &have); err != nil {
		return err
	}
	for _, n := range names {
		delete(have, n)
	}
	for n := range have {
		return fmt.Errorf("it has a field %.40q that is not known", n)
	}
	return json.Unmarshal(data, into)
}

// maxDepth bounds the nesting of JSON.
const maxDepth = 32

// strictJSON checks that data is one JSON value in which no object has a field
// twice.
func strictJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := strictValue(d, 0); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows it")
	}
	return nil
}

func strictValue(d *json.Decoder, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := t.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			n, _ := name.(string)
			if seen[n] {
				return fmt.Errorf("it has the field %.40q twice", n)
			}
			seen[n] = true
		}
		if err := strictValue(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
