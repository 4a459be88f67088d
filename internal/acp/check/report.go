package check

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print writes a row on one line.
func (r Row) Print(w io.Writer) error {
	detail := r.Title
	if r.Detail != "" {
		detail += " - " + strings.Join(strings.Fields(r.Detail), " ")
	}
	_, err := fmt.Fprintf(w, "%-10s %-18s %-10s %s\n", r.Status, r.ID, r.Tier, detail)
	return err
}

// PrintSummary writes the counts and the verdict.
func (r Report) PrintSummary(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "\ntier\tpass\tfail\tskip\tnot tested\n")
	for _, tier := range []Tier{Mandatory, Capability, Advisory} {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\n", tier,
			r.Count(tier, Pass), r.Count(tier, Fail), r.Count(tier, Skip), r.Count(tier, NotTested))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	verdict := "NOT CONFORMANT"
	if r.Conformant {
		verdict = "CONFORMANT"
	}
	if r.Reason != "" {
		verdict += ": " + r.Reason
	}
	_, err := fmt.Fprintf(w, "\n%s, protocol version %d: %s\n", r.Agent, r.Version, verdict)
	return err
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Seconds string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure"`
	Skipped *junitMessage `xml:"skipped"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

// JUnit writes the report as JUnit XML. An advisory row that failed is
// skipped there: it fails nobody's build.
func (r Report) JUnit(w io.Writer) error {
	suite := junitSuite{Name: fmt.Sprintf("acp v%d", r.Version), Tests: len(r.Rows)}
	for _, row := range r.Rows {
		c := junitCase{Name: row.ID + " " + row.Title, Class: "acp." + string(row.Tier), Seconds: fmt.Sprintf("%.3f", row.Took.Seconds())}
		note := &junitMessage{fmt.Sprintf("%s: %s", row.Status, row.Detail)}
		switch {
		case row.Status == Pass:
		case row.Status == Skip || row.Tier == Advisory || row.Status == NotTested && row.Tier == Capability:
			c.Skipped = note
			suite.Skipped++
		default:
			c.Failure = note
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
