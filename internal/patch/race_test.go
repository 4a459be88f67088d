//go:build race

package patch_test

// slower is how much longer things take while races are looked for.
const slower = 20
