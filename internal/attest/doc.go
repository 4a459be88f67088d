// Package attest makes and checks signed receipts: an in-toto Statement about
// one applied transaction in a DSSE envelope, signed with the Ed25519 key of
// the installation. docs/receipts.md has the format.
//
// What always holds: a receipt is a function of the log and the key, so it has
// the same bytes at every read; nothing is signed that Verify would refuse; a
// key that comes with a receipt is never trusted; the signed bytes are exactly
// those that this package writes for what they say, so that nothing in them is
// read in two ways; the private key leaves its file for memory only, and no
// method writes it anywhere.
package attest

import "fmt"

// A Class names why a receipt is not taken. Classes are stable.
type Class string

// The classes.
const (
	TooLarge     Class = "receipt.too_large"
	Malformed    Class = "receipt.malformed"
	PayloadKind  Class = "receipt.payload_type"
	NoSignature  Class = "receipt.no_signature"
	NoTrustedKey Class = "receipt.no_trusted_key"
	OtherKey     Class = "receipt.other_key"
	BadSignature Class = "receipt.bad_signature"
	BadStatement Class = "receipt.statement"
	Inconsistent Class = "receipt.inconsistent"
	LogBroken    Class = "receipt.log_broken"
	LogDiffers   Class = "receipt.log_differs"
)

// Classes lists all classes with what each means.
func Classes() []ClassInfo {
	return []ClassInfo{
		{TooLarge, "the file is larger than any receipt"},
		{Malformed, "the file is no DSSE envelope, or holds a field twice or one that an envelope does not have"},
		{PayloadKind, "the envelope holds something else than an in-toto statement"},
		{NoSignature, "the envelope has no signature, or more than are looked at"},
		{NoTrustedKey, "no key was given that the receipt could be checked with; one that comes with it proves nothing"},
		{OtherKey, "none of the signatures is by a key that was given"},
		{BadSignature, "a signature by a key that was given is not one of these bytes"},
		{BadStatement, "what was signed is no receipt in the form that this version knows"},
		{Inconsistent, "what was signed contradicts itself, as a digest that is not that of the files"},
		{LogBroken, "the export of the history is no unbroken history, or ends before the receipt's event"},
		{LogDiffers, "the history says something else than the receipt"},
	}
}

// A ClassInfo is a class with what it means.
type ClassInfo struct {
	Class   Class
	Meaning string
}

// A Refusal is why a receipt is not taken.
type Refusal struct {
	Class  Class
	Detail string
}

func (r *Refusal) Error() string { return string(r.Class) + ": " + r.Detail }

func refuse(c Class, format string, args ...any) error {
	return &Refusal{c, fmt.Sprintf(format, args...)}
}
