package change

import "math"

// simulated is by how much more often than p a look alarms below p: without an earlier alarm, by the number of runs and
// for p of 10^-3, 10^-4 and 10^-5. BenchmarkFactor counts it, with an error of some percent. Looks at few runs alarm
// less often than it says, because their p takes few values.
var simulated = []struct {
	runs   float64
	factor [3]float64
}{{30, [3]float64{2.84, 3.59, 4.11}}, {50, [3]float64{3.2, 4.52, 5.14}}, {70, [3]float64{3.25, 4.9, 6.0}},
	{110, [3]float64{3.35, 5.0, 6.9}}, {200, [3]float64{3.45, 5.2, 7.2}}}

// reserve is what is added to what was simulated: interpolation, and counts that are random themselves, may err by as
// much. With it, about 4.7% of dashboards alarm in a month.
const reserve = 1.15

// Factor is how many times as often as p one of the places of a look has a p at most as small, if no earlier look had.
// Between and beyond what is simulated it is a line in the logarithm of p.
func Factor(p float64, runs int) float64 {
	x := -math.Log10(max(p, 1e-300)) - 3
	at := min(max(int(math.Floor(x)), 0), 1)
	by := func(f [3]float64) float64 { return f[at] + (x-float64(at))*(f[at+1]-f[at]) }
	n := min(max(float64(runs), simulated[0].runs), simulated[len(simulated)-1].runs)
	for i := 1; ; i++ {
		if to := simulated[i]; n <= to.runs {
			from := simulated[i-1]
			share := (n - from.runs) / (to.runs - from.runs)
			return max(1, reserve*(by(from.factor)*(1-share)+by(to.factor)*share))
		}
	}
}
