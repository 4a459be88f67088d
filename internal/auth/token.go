package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// prefix marks a token as ours, for people and for secret scanners.
const prefix = "rt_"

// NewToken makes the text of the token with the given id: 256 random bits,
// and the id so that it can be found. It is returned beside its hash, which is
// all that may be stored.
func NewToken(id string) (token, hash string) {
	var b [32]byte
	rand.Read(b[:])
	token = prefix + id + "_" + base64.RawURLEncoding.EncodeToString(b[:])
	return token, HashToken(token)
}

// TokenID returns the id inside a token's text, or "" of what is no token.
func TokenID(token string) string {
	rest, ok := strings.CutPrefix(token, prefix)
	if !ok {
		return ""
	}
	id, secret, ok := strings.Cut(rest, "_")
	if !ok || len(secret) != 43 {
		return ""
	}
	return id
}

// HashToken returns the lowercase hex SHA-256 under which a token is stored.
// The token's own 256 bits make a slow hash needless.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// SameToken compares a token with a stored hash in constant time.
func SameToken(token, hash string) bool {
	return subtle.ConstantTimeCompare([]byte(HashToken(token)), []byte(hash)) == 1
}
