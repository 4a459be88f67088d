package process_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"roundtable/commands"
	"roundtable/domain"
)

// TestRebasedRename: what was moved stays a rename when it is merged with what
// was done since, so that the next merge follows it too; and what takes it back
// is one.
func TestRebasedRename(t *testing.T) {
	b := setUp(t, map[string]string{"a.txt": ten})
	stop := b.run()
	defer stop()
	p := b.ready("diff --git a/a.txt b/sub/z.txt\nsimilarity index 80%\nrename from a.txt\nrename to sub/z.txt\n--- a/a.txt\n+++ b/sub/z.txt\n@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n")
	isRename := func(proposal, from, to string) {
		t.Helper()
		shown, err := json.Marshal(b.ask("proposal.patch_files", "ada", fmt.Sprintf(`{"proposal_id":%q}`, proposal)))
		if want := fmt.Sprintf(`"operation":"rename","path":%q,"old_path":%q`, to, from); err != nil || !strings.Contains(string(shown), want) || strings.Count(string(shown), `"operation"`) != 1 {
			t.Errorf("%s, %v: want one %s", shown, err, want)
		}
	}
	isRename(p, "a.txt", "sub/z.txt")
	b.write("a.txt", strings.Replace(ten, "1\n", "one\n", 1))
	b.must(b.as("coder"), commands.AttachPatch{Proposal: p, Expected: 1, Rebase: true})
	isRename(p, "a.txt", "sub/z.txt")
	b.write("a.txt", strings.NewReplacer("1\n2\n", "one\n2\n", "9\n", "nine\n").Replace(ten))
	b.must(b.as("coder"), commands.AttachPatch{Proposal: p, Expected: 2, Rebase: true})
	isRename(p, "a.txt", "sub/z.txt")
	b.must(b.as("coder"), commands.ClaimResource{Resource: "directory:", Type: "write"})
	b.must(b.as("critic"), commands.CastVote{Proposal: p, Vote: "approve", Reason: "fine"})
	tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: p}).IDs["transaction"]
	if got := b.ended(tx); got.State != domain.TxApplied {
		t.Fatalf("%+v", got.Failure)
	}
	b.file("sub/z.txt", strings.NewReplacer("1\n2\n", "one\n2\n", "5\n", "five\n", "9\n", "nine\n").Replace(ten))
	if left := strings.TrimSpace(b.git("ls-files", "--deleted")); left != "a.txt" {
		t.Errorf("gone is %q", left)
	}
	isRename(b.must(b.as("coder"), commands.Compensate{Transaction: tx}).IDs["proposal"], "sub/z.txt", "a.txt")
}
