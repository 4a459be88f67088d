//go:build !race

package patch_test

const slower = 1
