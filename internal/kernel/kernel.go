// Package kernel answers what the running Linux kernel can be relied on for.
// What cannot be told counts as no.
package kernel

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SyncfsReports says whether syncfs(2) returns write errors, as it does since
// Linux 5.8.
func SyncfsReports() bool {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return false
	}
	release, _, _ := strings.Cut(unix.ByteSliceToString(u.Release[:]), "-")
	parts := strings.SplitN(release, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (major > 5 || major == 5 && minor >= 8)
}
