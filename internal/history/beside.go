package history

import (
	"math"

	"llmparity/internal/history/change"
)

// grouped are the numbers of series that stand beside each other: one figure of the cells of a machine that are
// compared with a control cell. Others stand alone.
func grouped(tested []*Series) (out [][]int) {
	at := map[[2]string]int{}
	for i, s := range tested {
		if !s.ratio() {
			out = append(out, []int{i})
			continue
		}
		key := [2]string{s.Machine, s.Figure.Name}
		g, known := at[key]
		if !known {
			g = len(out)
			at[key], out = g, append(out, nil)
		}
		out[g] = append(out[g], i)
	}
	return out
}

// beside has, for each series of a group and each run of the log, its logarithm against those of the others; nil: there
// are too few.
func (l *Log) beside(tested []*Series, group []int) [][]float64 {
	var logs [][]float64
	if len(group) == 1 {
		return nil
	}
	for _, i := range group {
		one := make([]float64, len(l.Runs))
		for run := range one {
			one[run] = math.NaN()
		}
		for _, p := range tested[i].Points {
			if p.Middle > 0 && p.Control > 0 {
				one[p.Run] = math.Log(p.Middle)
			}
		}
		logs = append(logs, one)
	}
	return change.Beside(logs)
}
