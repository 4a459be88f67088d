// Package blob keeps bytes by their SHA-256.
//
// What always holds: what a Put has answered is on disk whole, whatever
// crashes next; what Get returns has the digest that was asked for, or it is
// an error; a stored blob is never changed. Files are 0600, folders 0700.
package blob
