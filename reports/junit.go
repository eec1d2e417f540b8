package reports

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/parity"
	"llmparity/internal/gates"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Timestamp string      `xml:"timestamp,attr,omitempty"`
	Cases     []junitCase `xml:"testcase"`
	Out       string      `xml:"system-out,omitempty"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Skipped *junitFailure `xml:"skipped,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

// junitFailure is why a case failed, or was skipped.
type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes the result as test cases: each cell's launches, whether each cell agrees with itself, whether each pair
// agrees, and whether memory predictions held. A case without data is skipped, not passed.
func JUnit(w io.Writer, res *compare.Result) error {
	doc := junitSuites{Name: "llmparity"}
	for _, s := range []junitSuite{{Name: "launches", Cases: launchCases(res)},
		{Name: "repeatability", Cases: selfCases(res)}, {Name: "parity", Cases: parityCases(res)},
		{Name: "forecasts", Cases: predictionCases(res)}, {Name: "gate", Cases: gateCases(res.Gate)}} {
		if len(s.Cases) > 0 {
			doc.add(s, res.Runs...)
		}
	}
	if len(doc.Suites) > 0 {
		doc.Suites[0].Out = strings.Join(plain.Lines(append(answer.Of(res).Sentences(),
			section.WarningLines(res.Warnings, res)...)), "\n")
	}
	return doc.write(w)
}

// write writes the document.
func (d junitSuites) write(w io.Writer) error {
	text, err := xml.MarshalIndent(d, "", "  ")
	if err == nil {
		_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	}
	if err != nil {
		return fmt.Errorf("writing JUnit: %w", err)
	}
	return nil
}

// add adds a suite, which began with the first run, and its counts.
func (d *junitSuites) add(s junitSuite, runs ...compare.Run) {
	if len(runs) > 0 {
		s.Timestamp = runs[0].Started.UTC().Format("2006-01-02T15:04:05")
	}
	for i := range s.Cases {
		c := &s.Cases[i]
		c.Class, c.Name = cmp.Or(c.Class, "llmparity."+s.Name), plain.Line(c.Name)
		if c.Failure != nil {
			s.Failures++
		}
		if c.Skipped != nil {
			s.Skipped++
		}
	}
	s.Tests = len(s.Cases)
	d.Tests, d.Failures, d.Skipped = d.Tests+s.Tests, d.Failures+s.Failures, d.Skipped+s.Skipped
	d.Suites = append(d.Suites, s)
}

// launchCases has one case per cell: all planned launches succeeded.
func launchCases(res *compare.Result) (out []junitCase) {
	for _, c := range res.Cells {
		test := junitCase{Name: c.Label, Out: strings.Join(figureLines(res, c), "\n")}
		switch {
		case c.Refused != "":
			test.Failure = &junitFailure{Message: "not launched", Type: "refused", Text: plain.Line(c.Refused)}
		case len(c.Failures) > 0:
			test.Failure = failed(c)
		case c.Launches.Counted < c.Launches.Planned:
			test.Failure = &junitFailure{Message: section.Launches(c.Launches), Type: "incomplete",
				Text: "the run ended before all launches were started"}
		}
		out = append(out, test)
	}
	return out
}

// failed has the class of the first failure and describes all of them.
func failed(c *compare.Cell) *junitFailure {
	var words []string
	for _, x := range c.Failures {
		words = append(words, strings.TrimSpace(fmt.Sprintf("%s %d (attempt %d): %s %s %s", c.Repeated(), x.Repetition,
			x.Attempt, x.Status, x.Class, plain.Line(x.Error))))
	}
	first := c.Failures[0]
	return &junitFailure{Message: section.Launches(c.Launches), Text: strings.Join(plain.Lines(words), "\n"),
		Type: plain.Line(cmp.Or(string(first.Class), string(first.Status)))}
}

// figureLines are the figures of the terminal's table.
func figureLines(res *compare.Result, c *compare.Cell) []string {
	var out []string
	for _, col := range section.Columns(res) {
		if f := c.Figure(col.Name); f.Known() {
			out = append(out, fmt.Sprintf("%s: %s %s %s", f.Title, plain.Num(f.Center()), f.Unit, plain.Spread(f)))
		}
	}
	return out
}

func selfCases(res *compare.Result) (out []junitCase) {
	for _, c := range res.Cells {
		test := junitCase{Name: c.Label}
		switch {
		case !c.Self.Known:
			test.Skipped = &junitFailure{Message: plain.Line(c.Self.Verdict)}
		case !c.Self.Identical:
			test.Failure = &junitFailure{Message: plain.Line(c.Self.Verdict), Type: "not-repeatable"}
		}
		out = append(out, test)
	}
	return out
}

func parityCases(res *compare.Result) (out []junitCase) {
	for _, c := range res.Cells {
		if c.Scores != nil {
			out = append(out, scoreCase(c.Label+" and "+c.Scores.With+": scores", c.Scores))
		}
	}
	for _, p := range res.Parity {
		test := junitCase{Name: res.Cells[p.A].Label + " and " + res.Cells[p.B].Label}
		switch {
		case !p.Compared:
			test.Skipped = &junitFailure{Message: plain.Line(p.Verdict)}
		case !p.Identical && nearTie(p):
			test.Out = plain.Line("passed, although the outputs differ: " + p.Verdict)
		case !p.Identical:
			test.Failure = &junitFailure{Message: plain.Line(p.Verdict), Type: "parity",
				Text: plain.Line("prompt: " + p.Tokenisation)}
		default:
			test.Out = plain.Line(p.Verdict)
		}
		out = append(out, test)
		if p.Scores != nil {
			out = append(out, scoreCase(test.Name+": scores", p.Scores))
		}
	}
	return out
}

func scoreCase(name string, c *parity.Check) junitCase {
	test := junitCase{Name: name}
	switch words := plain.Line(c.Words()); {
	case !c.Known():
		test.Skipped = &junitFailure{Message: words}
	case c.Differs():
		test.Failure = &junitFailure{Message: words, Type: "scores"}
	default:
		test.Out = words
	}
	return test
}

// nearTie tells that two cells differ only where rounding can change the token: with the same prompt, by the margins in
// the record.
func nearTie(p parity.Parity) bool {
	return p.First != nil && p.First.Rounding && (p.SamePrompt == nil || *p.SamePrompt)
}

// predictionCases has one case per component of a cell: the measurement is within the predicted range.
func predictionCases(res *compare.Result) (out []junitCase) {
	for _, c := range res.Cells {
		if c.Prediction == nil || c.Prediction.Absent != "" {
			continue
		}
		for _, p := range c.Prediction.Parts {
			test := junitCase{Name: c.Label + ": " + p.Title}
			switch {
			case p.Within == nil:
				test.Skipped = &junitFailure{Message: plain.Line(strings.TrimSuffix(p.Verdict+": "+p.Why, ": "))}
			case !*p.Within:
				row := section.PredictionRow(p)
				test.Failure = &junitFailure{Message: plain.Line(p.Verdict), Type: "forecast",
					Text: plain.Line(fmt.Sprintf("predicted %s MiB (range %s), %s MiB in the run (%s), error %s", row[1], row[2],
						row[3], row[4], row[5]))}
			}
			out = append(out, test)
		}
	}
	return out
}

// GateJUnit writes a gate's outcome as test cases.
func GateJUnit(w io.Writer, g *gates.Outcome) error {
	doc := junitSuites{Name: "llmparity"}
	doc.add(junitSuite{Name: "gate", Cases: gateCases(g)}, compare.Run{Started: g.Run.Started})
	return doc.write(w)
}

// gateCases has a case a check. What is inconclusive is skipped, and what is only warned of passes with its words;
// that the gate as a whole is inconclusive is a failure of a case of its own.
func gateCases(g *gates.Outcome) (out []junitCase) {
	if g == nil {
		return nil
	}
	for _, c := range g.Checks {
		test := junitCase{Class: "llmparity.gate." + string(c.Kind), Name: c.Cell + ": " + c.Name}
		switch why := plain.Line(c.Why); c.Status {
		case gates.Failed:
			test.Failure = &junitFailure{Message: why, Type: string(c.Kind)}
		case gates.Inconclusive:
			test.Skipped = &junitFailure{Message: why}
		case gates.Warned:
			test.Out = "warning: " + why
		default:
			test.Out = why
		}
		out = append(out, test)
	}
	whole := junitCase{Name: "the gate as a whole", Out: plain.Line(g.Verdict)}
	if g.Status == gates.Inconclusive {
		whole.Failure, whole.Out = &junitFailure{Message: plain.Line(g.Verdict), Type: "inconclusive"}, ""
	}
	return append(out, whole)
}
