package projections

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"roundtable/internal/op"
)

// TestPlans: the newest page of a list, and one entity, are found by an index
// and never by sorting or by reading a table through.
func TestPlans(t *testing.T) {
	v, _ := newViews(t)
	inWorkspace := where{}
	inWorkspace.add("workspace = ?", "WS-1")
	byID := where{}
	byID.add("id = ?", "X-1")
	ofProposal := where{}
	ofProposal.add("proposal = ?", "P-1")
	now := time.Time{}
	for name, q := range map[string]string{
		"tasks":        planOf(taskView(), inWorkspace),
		"claims":       planOf(claimView(op.Call{}, now), inWorkspace),
		"proposals":    planOf(proposalView(), inWorkspace),
		"approvals":    planOf(approvalView(), inWorkspace),
		"transactions": planOf(transactionView(), inWorkspace),
		"test runs":    planOf(testRunView(), inWorkspace),
		"a task":       planOf(taskView(), byID),
		"a token":      planOf(tokenView(op.Call{}, now), byID),
		"a vote":       planOf(voteView(), byID),
		"votes":        strings.Replace(planOf(voteView(), ofProposal), " ORDER BY seq DESC", "", 1), // few, and sorted
	} {
		err := v.db.InReadTx(t.Context(), func(tx *sql.Tx) error {
			return each(t.Context(), tx, "EXPLAIN QUERY PLAN "+q, []any{"", 50}, func(s scanner) error {
				var id, parent, unused int
				var detail string
				err := s.Scan(&id, &parent, &unused, &detail)
				if strings.Contains(detail, "TEMP B-TREE") || strings.HasPrefix(detail, "SCAN") {
					t.Errorf("%s: %s", name, detail)
				}
				return err
			})
		})
		if err != nil {
			t.Fatal(name, err)
		}
	}
}

func planOf[E any](v view[E], w where) string { return v.query(w, "DESC") }
