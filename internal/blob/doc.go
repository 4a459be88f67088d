// Package blob keeps bytes by their SHA-256.
//
// What always holds: what a Put has answered is on disk whole, whatever
// crashes next; what is read has the digest that was asked for, or reading it
// is an error; a stored blob is never changed, unless it was damaged and the
// right bytes are put again; no link in the store's folder is followed. Files are 0600, folders 0700.
package blob
