package stats

import "sort"

// Call is what the statistics call what was seen.
type Call string

// What they call it.
const (
	Differs     Call = "different"
	TooSmall    Call = "too small to matter" // significant, but below the minimum effect
	Chance      Call = "no significant difference"
	TooFewToSay Call = "too few launches" // no values could have been significant
)

// Weight is a figure's in its family. Headlines weigh most, because Holm's correction for what nobody asked first would
// else hide a change of a tenth in them: three at eight and three others at one leave each the level of 0.0148, which a
// shift of two standard deviations reaches nine times in ten with ten launches a side. Of six a side no others could
// ever be called different at that; there they weigh six, which costs headlines nothing: p comes in steps. It hangs on
// how many launches there are alone, and never on what they gave.
func Weight(headline bool, least float64) float64 {
	const ofThree, heavy, lighter = 3, 8, 6
	switch {
	case !headline:
		return 1
	case least > Alpha/(ofThree*heavy+ofThree):
		return lighter
	}
	return heavy
}

// CallOf says what a corrected test is called; best is the least that its corrected p could have been.
func CallOf(significant bool, best float64) Call {
	switch {
	case significant:
		return Differs
	case best > Alpha*(1+1e-9):
		return TooFewToSay
	}
	return Chance
}

// Distinct counts tests that are not the same.
func Distinct(tests []Test) int {
	seen := map[string]bool{}
	for _, t := range tests {
		seen[t.Same] = true
	}
	return len(seen)
}

// Holm corrects p values for their number, by the weights of the tests. Of tests that are the same one counts, with the
// largest weight among them.
func Holm(tests []Test, of func(Test) float64) []float64 {
	var order []int // one of each
	heaviest := map[string]float64{}
	for i, t := range tests {
		if _, again := heaviest[t.Same]; !again {
			order = append(order, i)
		}
		heaviest[t.Same] = max(heaviest[t.Same], t.Weight)
	}
	left := 0.0
	for _, w := range heaviest {
		left += w // of whole numbers: their order changes nothing
	}
	share := func(i int) float64 { return of(tests[i]) / heaviest[tests[i].Same] }
	sort.SliceStable(order, func(i, j int) bool { return share(order[i]) < share(order[j]) })
	corrected, highest := map[string]float64{}, 0.0
	for _, i := range order {
		highest = max(highest, min(1, share(i)*left))
		corrected[tests[i].Same] = highest
		left -= heaviest[tests[i].Same]
	}
	out := make([]float64, len(tests))
	for i, t := range tests {
		out[i] = corrected[t.Same]
	}
	return out
}
