package reports

import (
	"fmt"
	"strings"

	"llmparity/compare"
	"llmparity/internal/record"
)

// risks say of each cell whether its memory was thought to fit, where that was in doubt, and what would help.
func risks(res *compare.Result) []string {
	var out []string
	for i := range res.Cells {
		c := &res.Cells[i]
		r := c.Risk
		if r == nil || r.Level != record.RiskHigh && r.Level != record.RiskMedium && c.Refused == "" {
			continue
		}
		words := fmt.Sprintf("%s: %s risk of running out of memory", c.Label, r.Level)
		if c.Refused != "" {
			words = fmt.Sprintf("%s: refused: %s", c.Label, c.Refused)
		} else if len(r.Reasons) > 0 {
			words += ": " + strings.Join(r.Reasons, "; ")
		}
		if len(r.Recommendations) > 0 {
			words += ". What would help: " + strings.Join(r.Recommendations, "; ")
		}
		out = append(out, strings.TrimSuffix(words, ".")+".")
	}
	return out
}

// riskGrid has every place that the cells' memory was to fit into.
func riskGrid(res *compare.Result) *grid {
	t := &grid{Head: []string{"cell", "risk", "where", "needed (MiB)", "at most (MiB)", "free (MiB)", "free by"}}
	for i := range res.Cells {
		c := &res.Cells[i]
		if c.Risk == nil {
			continue
		}
		for _, p := range c.Risk.Places {
			t.Rows = append(t.Rows, []string{line(c.Label), string(p.Level), line(p.Name),
				mib(float64(p.Need) / record.MiB), mib(float64(p.High) / record.MiB),
				mib(float64(p.Free) / record.MiB), line(p.How)})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}
