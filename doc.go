// Package roundtable holds the tests of the project as a whole: which package
// may know which, and how long a file and a function may be.
package roundtable
