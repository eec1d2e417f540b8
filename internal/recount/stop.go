package recount

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// stops works out why a cell was not repeated any more: the interval of its figure at the last look, and that it had
// been too wide before.
func (c *check) stops() {
	c.Helper()
	for i, cell := range c.res.Cells {
		s, mine := c.cells[i].stop, c.cells[i]
		if s == nil {
			continue
		}
		what := cell.Label + ": its last look"
		values := mine.Figures[s.Figure].Values
		c.same(what+", confidence", s.Confidence, 1-(1-s.Level)/float64(s.Looks))
		c.same(what+", level", s.Level, 0.95)
		if c.compared++; s.Repetitions > len(values) || s.Repetitions == 0 || s.Look < 1 || s.Look > s.Looks {
			c.Errorf("%s is the %d. of %d at %d repetitions, and there are %d values of %s", what, s.Look, s.Looks,
				s.Repetitions, len(values), s.Figure)
			continue
		}
		at := look(values[:s.Repetitions], s)
		c.about(what+", median", s.Median, at.Median, last)
		known := !math.IsNaN(at.Lo)
		if c.present(what+", interval", s.Low != nil && s.High != nil, known); known && s.Low != nil && s.High != nil {
			c.about(what+", lower end", *s.Low, at.Lo, last)
			c.about(what+", upper end", *s.High, at.Hi, last)
		}
		if c.compared++; s.Narrow != narrow(at, s.Percent) {
			c.Errorf("%s: that its interval is narrow is %v in the report, and it is %v to %v around %v", what,
				s.Narrow, at.Lo, at.Hi, at.Median)
		}
		if c.compared++; !s.Narrow && s.Look != s.Looks {
			c.Errorf("%s is the %d. of %d, though nothing was narrow", what, s.Look, s.Looks)
		}
		c.schedule(what, cell.Run, s, values)
	}
}

func look(values []float64, s *stop) Figure {
	f := Figure{Values: slices.Clone(values)}
	f.concludeAt(s.Confidence)
	return f
}

func narrow(f Figure, percent float64) bool {
	return !math.IsNaN(f.Lo) && max(f.Hi-f.Median, f.Median-f.Lo) <= math.Abs(f.Median)*percent/100
}

// schedule holds the look against those that were fixed before the first launch, where the plan's text says enough.
func (c *check) schedule(what string, run int, s *stop, values []float64) {
	text, err := os.ReadFile(filepath.Join(c.evidence[run].dir, "plan.yaml"))
	if err != nil {
		c.Fatal(err)
	}
	least, most := planned(text, `(?m)^repetitions: *([0-9]+)`), planned(text, `max_repetitions: *([0-9]+)`)
	if least == 0 {
		return
	}
	if most == 0 {
		most = 5 * least
	}
	looks := looksOf(least, most)
	if c.same(what+", looks", float64(s.Looks), float64(len(looks))); s.Look > len(looks) {
		return
	}
	if at := looks[s.Look-1]; s.Narrow || s.Repetitions > at {
		// at the end there may be fewer: some have failed
		c.same(what+", repetitions", float64(s.Repetitions), float64(at))
	}
	for _, n := range looks[:s.Look-1] {
		if c.compared++; n <= len(values) && narrow(look(values[:n], s), s.Percent) {
			c.Errorf("%s is after %d repetitions, and the interval was narrow after %d", what, s.Repetitions, n)
		}
	}
}

func planned(text []byte, pattern string) int {
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(found[1])) // digits
	return n
}

// looksOf are from the first number of repetitions that has an interval, each half as many again as the one before, to
// the most. How many there are says how sure each must be, and that how many values the first takes: there are as few
// as agree with themselves.
func looksOf(least, most int) []int {
	for n := 1; ; n++ {
		first := least
		for 1-math.Pow(2, 1-float64(first)) < 1-0.05/float64(n)-1e-15 {
			first++
		}
		var at []int
		for v := first; v < most; v = int(math.Ceil(1.5 * float64(v))) {
			at = append(at, v)
		}
		if at = append(at, most); len(at) <= n {
			return at
		}
	}
}
