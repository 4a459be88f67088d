package attest_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"pgregory.net/rapid"

	"roundtable/events"
	"roundtable/internal/attest"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// ring makes a ring with a key of its own.
func ring(t testing.TB) (*attest.Ring, []attest.PublicKey) {
	t.Helper()
	r := attest.NewRing(t.TempDir() + "/keys")
	keys, err := r.Public()
	if err != nil {
		t.Fatal(err)
	}
	return r, keys
}

func sha(s string) string { return patch.Digest([]byte(s)) }

// digest is the digest of paths as the writer makes it.
func digest(files []attest.File, side func(attest.File) attest.State) string {
	states := map[string]patch.State{}
	for _, f := range files {
		s := side(f)
		states[f.Path] = patch.State{Kind: patch.Kind(s.Kind), Mode: s.Mode, SHA256: s.SHA256, Size: s.Size}
	}
	return repo.PathsDigest(states)
}

func before(f attest.File) attest.State { return f.Before }
func after(f attest.File) attest.State  { return f.After }

// receipt is one of a transaction that changed files.
func receipt(files ...attest.File) attest.Receipt {
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	return attest.Receipt{Transaction: "TX-1", Workspace: "WS-1", WorkspaceKind: "git", Proposal: "P-1", Revision: 2, Attempt: 1,
		PatchDigest: sha("patch"), PolicyDigest: sha("policy"), Base: attest.Base{Commit: strings.Repeat("a", 40), PathsDigest: digest(files, before)},
		Before: attest.Side{PathsDigest: digest(files, before), Tree: strings.Repeat("1", 40)},
		After:  attest.Side{PathsDigest: digest(files, after), Tree: strings.Repeat("2", 40)}, Files: files,
		Gates: []events.GateResult{{Gate: "votes", Status: "passed", Because: []string{"1 of 1"}}}, Evidence: attest.Evidence{Votes: []attest.Vote{}, Approvals: []attest.Approval{}, TestRuns: []attest.TestRun{}}, Tested: []string{}, Fences: []events.Fence{},
		Author: "PR-1", AttachedBy: "PR-1", OpenedBy: "PR-2", RequestedBy: "PR-2", OpenedAt: at, RequestedAt: at, AppliedAt: at,
		Log: attest.LogPlace{Position: 41, Event: ulid.Make().String(), Hash: sha("row")}}
}

func file(path, was, is string) attest.File {
	state := func(s string) attest.State {
		if s == "" {
			return attest.State{Kind: "absent"}
		}
		return attest.State{Kind: "file", Mode: "100644", SHA256: sha(s), Size: int64(len(s))}
	}
	return attest.File{Path: path, Before: state(was), After: state(is)}
}

func simple() attest.Receipt { return receipt(file("a.txt", "one", "two"), file("dir/new", "", "x")) }

func sign(t testing.TB, r *attest.Ring, of attest.Receipt) []byte {
	t.Helper()
	data, err := r.Sign(of)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// refused checks that a receipt is not taken, for a reason.
func refused(t testing.TB, file []byte, keys []attest.PublicKey, want attest.Class) {
	t.Helper()
	_, err := attest.Verify(file, keys)
	r, ok := errors.AsType[*attest.Refusal](err)
	if !ok || r.Class != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestReceipt: a receipt is verified with the public key, says what was signed,
// and is the same bytes each time.
func TestReceipt(t *testing.T) {
	r, keys := ring(t)
	of := simple()
	data := sign(t, r, of)
	if again := sign(t, r, of); !bytes.Equal(again, data) {
		t.Errorf("another time: %s", again)
	}
	v, err := attest.Verify(data, keys)
	if err != nil || v.Key != keys[0].ID || len(attest.Differences(v.Statement.Predicate, of)) > 0 {
		t.Errorf("%+v %v", v, err)
	}
	want := []attest.Subject{{".", map[string]string{"gitTree": of.After.Tree}}, {"a.txt", map[string]string{"sha256": sha("two")}}, {"dir/new", map[string]string{"sha256": sha("x")}}}
	if fmt.Sprint(v.Statement.Subject) != fmt.Sprint(want) {
		t.Errorf("%v", v.Statement.Subject)
	}
	var e dsse.Envelope
	if err := json.Unmarshal(data, &e); err != nil || e.PayloadType != "application/vnd.in-toto+json" || len(e.Signatures) != 1 {
		t.Errorf("%+v %v", e, err)
	}
	raw, err := base64.StdEncoding.DecodeString(e.Signatures[0].Sig)
	payload, err2 := e.DecodeB64Payload()
	if err := errors.Join(err, err2); err != nil || !ed25519.Verify(keys[0].Key, dsse.PAE(e.PayloadType, payload), raw) {
		t.Errorf("not as DSSE has it: %v", err)
	}
}

// TestTrust: only a key that the caller gives is one, whatever the file names.
func TestTrust(t *testing.T) {
	r, keys := ring(t)
	_, other := ring(t)
	data := sign(t, r, simple())
	refused(t, data, nil, attest.NoTrustedKey)
	refused(t, data, other, attest.OtherKey)
	if _, err := attest.Verify(data, append(other, keys...)); err != nil {
		t.Error(err)
	}
	lie := bytes.Replace(data, []byte(keys[0].ID), []byte(other[0].ID), 1)
	refused(t, lie, keys, attest.OtherKey)
	refused(t, lie, other, attest.BadSignature)
	if _, err := attest.Verify(bytes.Replace(data, []byte(keys[0].ID), nil, 1), append(other, keys...)); err != nil {
		t.Errorf("a signature that names no key: %v", err)
	}
}

// TestAnyByte: whichever byte of the file is changed, and to what, the receipt
// is not taken as another one.
func TestAnyByte(t *testing.T) {
	r, keys := ring(t)
	of := simple()
	data := sign(t, r, of)
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
		by := rapid.Byte().Draw(t, "by")
		if by == data[at] {
			t.Skip("the same byte")
		}
		bad := bytes.Clone(data)
		bad[at] = by
		v, err := attest.Verify(bad, keys)
		if _, isRefusal := errors.AsType[*attest.Refusal](err); err != nil && !isRefusal {
			t.Fatalf("no refusal: %v", err)
		}
		if err == nil && (len(bytes.TrimSpace(bad)) >= len(data) || len(attest.Differences(v.Statement.Predicate, of)) > 0) {
			t.Fatalf("byte %d as %q is taken", at, by)
		}
	})
}

// TestEveryByte flips a bit in each byte of what was signed, and each bit of the
// signature: none of these is taken.
func TestEveryByte(t *testing.T) {
	r, keys := ring(t)
	var e dsse.Envelope
	if err := json.Unmarshal(sign(t, r, simple()), &e); err != nil {
		t.Fatal(err)
	}
	flipped := func(text string, bit int) string {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		raw[bit/8] ^= 1 << (bit % 8)
		return base64.StdEncoding.EncodeToString(raw)
	}
	try := func(e dsse.Envelope) {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		refused(t, data, keys, attest.BadSignature)
	}
	for bit := range 64 * 8 {
		bad := e
		bad.Signatures = []dsse.Signature{{KeyID: keys[0].ID, Sig: flipped(e.Signatures[0].Sig, bit)}}
		try(bad)
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	for i := range payload {
		bad := e
		bad.Payload = flipped(e.Payload, 8*i+i%8)
		try(bad)
	}
	long := e
	long.Signatures = []dsse.Signature{{KeyID: keys[0].ID, Sig: base64.StdEncoding.EncodeToString(make([]byte, 65))}}
	try(long)
}

// TestMalformed: what is no receipt is refused for what it is.
func TestMalformed(t *testing.T) {
	r, keys := ring(t)
	data := string(sign(t, r, simple()))
	var e dsse.Envelope
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		t.Fatal(err)
	}
	one := `{"keyid":"` + e.Signatures[0].KeyID + `","sig":"` + e.Signatures[0].Sig + `"}`
	envelope := func(payloadType, payload, signatures string) string {
		return `{"payloadType":"` + payloadType + `","payload":"` + payload + `","signatures":[` + signatures + `]}`
	}
	good := envelope(attest.PayloadType, e.Payload, one)
	for name, c := range map[string]struct {
		file string
		want attest.Class
	}{
		"nothing":            {"", attest.Malformed},
		"no JSON":            {"receipt", attest.Malformed},
		"null":               {"null", attest.Malformed},
		"a list":             {"[" + good + "]", attest.Malformed},
		"an empty object":    {"{}", attest.Malformed},
		"something after":    {good + "{}", attest.Malformed},
		"cut":                {good[:len(good)-3], attest.Malformed},
		"another type":       {envelope("application/json", e.Payload, one), attest.PayloadKind},
		"no signature":       {envelope(attest.PayloadType, e.Payload, ""), attest.NoSignature},
		"many signatures":    {envelope(attest.PayloadType, e.Payload, strings.Repeat(one+",", 16)+one), attest.NoSignature},
		"a bad one beside":   {envelope(attest.PayloadType, e.Payload, one+`,{"keyid":"`+keys[0].ID+`","sig":"AAAA"}`), attest.BadSignature},
		"payload twice":      {strings.Replace(good, `"payload":`, `"payload":"e30=","payload":`, 1), attest.Malformed},
		"signature twice":    {strings.Replace(good, `"sig":`, `"sig":"AAAA","sig":`, 1), attest.Malformed},
		"other letters":      {strings.Replace(good, `"payload":`, `"Payload":`, 1), attest.Malformed},
		"other letters too":  {strings.Replace(good, `{`, `{"Payload":"e30=",`, 1), attest.Malformed},
		"an unknown field":   {strings.Replace(good, `{`, `{"key":"x",`, 1), attest.Malformed},
		"a key beside a sig": {strings.Replace(good, `"sig":`, `"cert":"x","sig":`, 1), attest.Malformed},
		"a number":           {strings.Replace(good, `"`+e.Payload+`"`, `7`, 1), attest.Malformed},
		"no base64":          {envelope(attest.PayloadType, "%%%", one), attest.Malformed},
		"base64 with breaks": {envelope(attest.PayloadType, e.Payload[:4]+`\n`+e.Payload[4:], one), attest.Malformed},
		"other base64":       {envelope(attest.PayloadType, "-_==", one), attest.Malformed},
		"deep":               {strings.Repeat("[", 100_000), attest.Malformed},
		"huge":               {strings.Repeat(" ", attest.MaxEnvelope+1), attest.TooLarge},
	} {
		t.Run(name, func(t *testing.T) { refused(t, []byte(c.file), keys, c.want) })
	}
	var spaced bytes.Buffer
	if err := json.Indent(&spaced, []byte(data), "", "\t"); err != nil {
		t.Fatal(err)
	}
	two := envelope(attest.PayloadType, e.Payload, `{"keyid":"somebody","sig":"AAAA"},`+one)
	for _, file := range []string{good, data, spaced.String(), two} {
		if _, err := attest.Verify([]byte(file), keys); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if v, err := attest.Verify([]byte(two), keys); err != nil || len(v.Others) != 1 {
		t.Errorf("%+v %v", v, err)
	}
}

// signer signs whatever it is given, as somebody who has the key could.
type signer struct {
	private ed25519.PrivateKey
	key     attest.PublicKey
}

func newSigner(t *testing.T) signer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := attest.ParsePublic(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	return signer{private, keys[0]}
}

func (s signer) sign(payload []byte) []byte {
	sig := ed25519.Sign(s.private, dsse.PAE(attest.PayloadType, payload))
	return fmt.Appendf(nil, `{"payloadType":%q,"payload":%q,"signatures":[{"keyid":%q,"sig":%q}]}`, attest.PayloadType,
		base64.StdEncoding.EncodeToString(payload), s.key.ID, base64.StdEncoding.EncodeToString(sig))
}

// TestStatement: also under a good signature only a statement that is written
// as one and does not contradict itself is taken, and the service signs no other.
func TestStatement(t *testing.T) {
	r, keys := ring(t)
	v, err := attest.Verify(sign(t, r, simple()), keys)
	if err != nil {
		t.Fatal(err)
	}
	s := newSigner(t)
	payload, err := json.Marshal(v.Statement)
	if err != nil {
		t.Fatal(err)
	}
	mine := []attest.PublicKey{s.key}
	if _, err := attest.Verify(s.sign(payload), mine); err != nil {
		t.Fatal(err)
	}
	text := string(payload)
	for name, c := range map[string]struct {
		payload string
		want    attest.Class
	}{
		"no JSON":           {"x", attest.BadStatement},
		"a list":            {"[]", attest.BadStatement},
		"another statement": {strings.Replace(text, "Statement/v1", "Statement/v2", 1), attest.BadStatement},
		"another predicate": {strings.Replace(text, attest.PredicateType, "urn:roundtable:transaction-receipt:v2", 1), attest.BadStatement},
		"a field twice":     {strings.Replace(text, `"revision":2`, `"revision":1,"revision":2`, 1), attest.BadStatement},
		"an unknown field":  {strings.Replace(text, `"revision":2`, `"revision":2,"approved":true`, 1), attest.BadStatement},
		"other letters":     {strings.Replace(text, `"revision":2`, `"Revision":2`, 1), attest.BadStatement},
		"blanks":            {text + " ", attest.BadStatement},
		"an escape":         {strings.Replace(text, `"TX-1"`, `"TX\u002d1"`, 1), attest.BadStatement},
		"bytes before":      {strings.Replace(text, sha("one"), sha("eins"), 1), attest.Inconsistent},
		"bytes after":       {strings.Replace(text, sha("two"), sha("zwei"), 1), attest.Inconsistent},
		"bytes and subject": {strings.ReplaceAll(text, sha("two"), sha("zwei")), attest.Inconsistent},
		"a mode":            {strings.Replace(text, "100644", "100755", 1), attest.Inconsistent},
		"a size":            {strings.Replace(text, `"size_bytes":3`, `"size_bytes":4`, 1), attest.Inconsistent},
		"a path":            {strings.ReplaceAll(text, "a.txt", "b.txt"), attest.Inconsistent},
		"another tree":      {strings.Replace(text, strings.Repeat("2", 40), strings.Repeat("3", 40), 1), attest.Inconsistent},
		"no tree":           {strings.ReplaceAll(text, strings.Repeat("2", 40), "two"), attest.Inconsistent},
		"no commit":         {strings.Replace(text, `"files":[`, `"commit":{"id":"head","ref":"refs/heads/main"},"files":[`, 1), attest.Inconsistent},
		"no branch":         {strings.Replace(text, `"files":[`, `"commit":{"id":"`+strings.Repeat("4", 40)+`","ref":""},"files":[`, 1), attest.Inconsistent},
		"no place":          {strings.Replace(text, `"position":41`, `"position":0`, 1), attest.Inconsistent},
	} {
		t.Run(name, func(t *testing.T) { refused(t, s.sign([]byte(c.payload)), mine, c.want) })
	}
	for name, of := range map[string]attest.Receipt{
		"no files":     receipt(),
		"out of order": receipt(file("b", "x", "y"), file("a", "x", "y")),
		"twice":        receipt(file("a", "x", "y"), file("a", "x", "y")),
		"the tree":     receipt(file(".", "x", "y")),
		"not UTF-8":    receipt(file("caf\xe9", "x", "y")),
	} {
		if data, err := r.Sign(of); err == nil {
			t.Errorf("%s is signed: %s", name, data)
		}
	}
}

// TestPathsDigest: the digest is that of the writer, for all states.
func TestPathsDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := rapid.Custom(func(t *rapid.T) attest.State {
			switch kind := rapid.SampledFrom([]string{"absent", "file", "symlink", "dir", "special"}).Draw(t, "kind"); kind {
			case "file", "symlink":
				text := rapid.String().Draw(t, "text")
				return attest.State{Kind: kind, Mode: rapid.SampledFrom([]string{"100644", "100755", "120000"}).Draw(t, "mode"), SHA256: sha(text), Size: int64(len(text))}
			default:
				return attest.State{Kind: kind}
			}
		})
		paths := rapid.SliceOfDistinct(rapid.StringN(1, 20, 40), rapid.ID).Draw(t, "paths")
		var files []attest.File
		for _, p := range paths {
			files = append(files, attest.File{Path: p, Before: state.Draw(t, "before"), After: state.Draw(t, "after")})
		}
		if attest.PathsDigest(files, before) != digest(files, before) || attest.PathsDigest(files, after) != digest(files, after) {
			t.Fatalf("%v", files)
		}
	})
}

// FuzzVerify: whatever a file holds, it is verified or refused.
func FuzzVerify(f *testing.F) {
	r, keys := ring(f)
	good := sign(f, r, simple())
	f.Add(good)
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":"AAAA"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := attest.Verify(data, keys)
		if _, ok := errors.AsType[*attest.Refusal](err); err != nil && !ok {
			t.Errorf("%v", err)
		}
	})
}
