package eventlog

import (
	"crypto/sha256"
	"encoding/binary"

	"roundtable/events"
)

// HashSize is the size of a row's hash, in bytes.
const HashSize = sha256.Size

// Hash returns the hash of an event's row: the SHA-256 of these fields in this
// order, each preceded by its length as a big-endian 64-bit number.
//
//	prev         the hash of the row before; empty for position 1
//	position     big-endian 64-bit number
//	id           the ULID's text
//	workspace    text
//	stream       the stream's name as text, never a store's number for it
//	version      big-endian 64-bit number
//	type         text
//	schema       big-endian 64-bit number
//	time         big-endian 64-bit number: unix nanoseconds
//	actor        text
//	session      text
//	command      text
//	cause        text
//	correlation  text
//	data         the SHA-256 of the stored bytes
//
// Since every field has its length before it, no two different rows give the
// same input. Since only the digest of data goes in, an export without data
// but with its digests can still be verified, by HashDigest. Hash and PrevHash
// of r are not read. The order never changes: a store that hashed otherwise
// would keep another log.
func Hash(prev []byte, r *events.Record) [HashSize]byte {
	return HashDigest(prev, r, sha256.Sum256(r.Data))
}

// HashDigest is Hash for a record whose data is known by its digest alone.
func HashDigest(prev []byte, r *events.Record, data [HashSize]byte) [HashSize]byte {
	b := make([]byte, 0, 512)
	b = lengthPrefixed(b, prev)
	b = number(b, r.Position)
	b = lengthPrefixed(b, r.ID)
	b = lengthPrefixed(b, r.Workspace)
	b = lengthPrefixed(b, r.Stream)
	b = number(b, r.Version)
	b = lengthPrefixed(b, r.Type)
	b = number(b, int64(r.Schema))
	b = number(b, r.Time.UnixNano())
	b = lengthPrefixed(b, r.Actor)
	b = lengthPrefixed(b, r.Session)
	b = lengthPrefixed(b, r.Command)
	b = lengthPrefixed(b, r.Cause)
	b = lengthPrefixed(b, r.Correlation)
	b = lengthPrefixed(b, data[:])
	return sha256.Sum256(b)
}

func lengthPrefixed[T ~string | ~[]byte](b []byte, field T) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(field)))
	return append(b, field...)
}

func number(b []byte, n int64) []byte {
	b = binary.BigEndian.AppendUint64(b, 8)
	return binary.BigEndian.AppendUint64(b, uint64(n))
}
