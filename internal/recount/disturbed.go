package recount

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Machines that were not left alone, worked out again: what others did before a run's first launch, and what a
// hypervisor gave to other machines while launches were made.

// machine is of environment.json what tells of others.
type machine struct {
	Cores      float64
	Background *struct {
		Seconds float64
		Busy    float64 `json:"busy_cores"`
		Stolen  float64 `json:"stolen_cores"`
	}
	Processor struct {
		Logical float64 `json:"logical_cores"`
	}
}

func (m *machine) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, m)
}

// saying is a number of a sentence, and the words that it stands behind.
type saying struct {
	behind string
	v      float64
}

// others is what must be said of others who were busy: nil where they were not, or where nobody can tell. They were
// where they took more than a tenth of the cores just before the run; where nobody listened, where the load was more
// than half of them.
func (f *folder) others() []saying {
	m, b := f.machine, f.machine.Background
	switch {
	case m.Cores == 0:
	case b != nil:
		cores := max(m.Cores, m.Processor.Logical)
		if b.Busy+b.Stolen > cores/10 {
			out := []saying{{"others took ", b.Busy}, {" of ", cores}, {" in ", b.Seconds}}
			if b.Stolen > 0 {
				out = append(out, saying{"the host's other guests ", b.Stolen})
			}
			return out
		}
	case len(f.attempts) > 0 && f.attempts[0].load > m.Cores/2:
		return []saying{{"the load average was ", f.attempts[0].load}, {" on ", m.Cores}}
	}
	return nil
}

// stolen is of each launch which part of the processors' time went to other machines, in percent; nil where one does
// not tell.
func (f *folder) stolen(counted []*attempt) []float64 {
	var out []float64
	for _, a := range counted {
		if a.stolen == nil || a.end <= a.begin || f.machine.Cores == 0 {
			return nil
		}
		out = append(out, 100**a.stolen/(f.machine.Cores*float64(a.end-a.begin)/1e9))
	}
	return out
}

// theft is how much more was stolen of one side's launches than of another's.
type theft struct {
	was, is, p float64
	more       bool
}

func moreStolen(than, of []float64) theft {
	t := theft{was: middle(than), is: middle(of)}
	if len(than) > 0 && len(of) > 0 && t.is > t.was {
		t.p = chance(than, of)
		t.more = t.p <= 0.1
	}
	return t
}

func (t theft) said() []saying {
	return []saying{{"a hypervisor gave ", t.is}, {" ran, and ", t.was}, {"p = ", t.p}}
}

var numeral = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?`)

// printed tells whether a numeral is a value, as far as its digits go.
func printed(text string, v float64) bool {
	got, err := strconv.ParseFloat(text, 64)
	mantissa, power, _ := strings.Cut(text, "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	exponent, _ := strconv.Atoi(power)
	return err == nil && math.Abs(got-v) <= 0.5001*math.Pow(10, float64(exponent-len(decimals)))+1e-12*math.Abs(v)
}

// tells says what is wrong with a sentence that should have these numbers, one behind another; empty: nothing is.
func tells(sentence string, want []saying) string {
	rest := sentence
	for _, w := range want {
		_, after, found := strings.Cut(rest, w.behind)
		if !found || !printed(numeral.FindString(after), w.v) {
			return fmt.Sprintf("it says %q, which should have %.6g behind %q", sentence, w.v, w.behind)
		}
		rest = after
	}
	return ""
}

// timed are the figures' units that others on a machine make worse.
func timed(unit string) bool {
	return slices.Contains([]string{"ms", "µs", "tokens/s", "requests/s"}, unit)
}

type warned struct{ Code, Text, Where string }

// only finds the one warning of a code.
func (c *check) only(what, code string, all []warned, want bool) (warned, bool) {
	c.Helper()
	var found []warned
	for _, w := range all {
		if w.Code == code {
			found = append(found, w)
		}
	}
	if c.compared++; len(found) > 1 || (len(found) == 1) != want {
		c.Errorf("%s: there are %d warnings %s in the report; worked out again there is one: %v", what, len(found),
			code, want)
	}
	if len(found) == 0 || !want {
		return warned{}, false
	}
	return found[0], true
}

// sentence holds what a warning says.
func (c *check) sentence(what string, w warned, want []saying) {
	c.Helper()
	c.compared += len(want)
	if wrong := tells(w.Text, want); wrong != "" {
		c.Errorf("%s: of the warning %s: %s", what, w.Code, wrong)
	}
}

// disturbed holds the warnings of machines that were not left alone: a run's, those beside times and rates, and those
// beside differences; and what stands beside figures of launches that are not alike.
func (c *check) disturbed(text []byte) {
	c.Helper()
	var res struct {
		Cells []struct {
			Label   string
			Run     int
			Spec    struct{ Engine string }
			Figures []struct {
				Name, Unit string
				Median     *float64
				Warnings   []warned
			}
		}
		Comparisons []struct {
			A, B   int
			Ratios []struct {
				Figure, Unit string
				Ratio        *float64
				Significant  bool
				Warnings     []warned
			}
		}
		Warnings []warned
	}
	if err := json.Unmarshal(text, &res); err != nil {
		c.Fatal(err)
	}
	busy := 0
	for _, e := range c.evidence {
		if e.folder.others() != nil {
			busy++
		}
	}
	own := slices.DeleteFunc(slices.Clone(res.Warnings), func(w warned) bool { return w.Code != "busy-machine" })
	if c.same("runs with a busy machine", float64(len(own)), float64(busy)); len(own) != busy {
		return
	}
	for _, e := range c.evidence { // they come in the order of the runs
		if numbers := e.folder.others(); numbers != nil {
			c.sentence("the run "+own[0].Where, own[0], numbers)
			own = own[1:]
		}
	}
	for i, cell := range res.Cells {
		numbers := c.evidence[cell.Run].folder.others()
		for _, f := range cell.Figures {
			what := cell.Label + ": " + f.Name
			c.marked(what, f.Name, c.cells[i].Figures[f.Name], f.Warnings)
			if w, ok := c.only(what, "busy-machine", f.Warnings, numbers != nil && timed(f.Unit) &&
				f.Median != nil); ok {
				c.sentence(what, w, numbers)
			}
		}
	}
	for _, p := range res.Comparisons {
		a, b := res.Cells[p.A], res.Cells[p.B]
		for _, r := range p.Ratios {
			what := fmt.Sprintf("%s of %s over %s", r.Figure, a.Label, b.Label)
			slow, quick := p.B, p.A // of what is longer, or lower
			if isTime := !strings.Contains(r.Unit, "/"); isTime == (r.Ratio != nil && *r.Ratio > 1) {
				slow, quick = p.A, p.B
			}
			t := moreStolen(c.cells[quick].stolen, c.cells[slow].stolen)
			asked := r.Significant && r.Ratio != nil && timed(r.Unit) && a.Run != b.Run &&
				a.Spec.Engine == b.Spec.Engine
			if w, ok := c.only(what, "stolen-time", r.Warnings, asked && t.more); ok {
				c.word(what+", where time was stolen", w.Where, res.Cells[slow].Label)
				c.sentence(what, w, t.said())
			}
		}
	}
}

// sharedOutside tells whether the PSS of an engine of one process leaves out, at its peak, more of its RSS than is
// usual: 8 MiB and a tenth.
func sharedOutside(counted []*attempt) bool {
	return slices.ContainsFunc(counted, func(a *attempt) bool {
		var peak *total
		for i, t := range a.totals {
			if t.method == "smaps_rollup" && (peak == nil || math.IsNaN(peak.pss) || t.pss > peak.pss) {
				peak = &a.totals[i]
			}
		}
		return peak != nil && peak.processes == 1 && peak.rss-peak.pss > max(8, 0.1*peak.rss)
	})
}
