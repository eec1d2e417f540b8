package compare

import (
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// sampled names what read the figures of memory that do not say so.
func sampled(figures []evidence.Figure, attempts []*record.Attempt) []evidence.Figure {
	rss := record.MethodStatm
	if len(attempts) > 0 {
		rss = rssMethod(attempts[0])
	}
	for i := range figures {
		switch f := &figures[i]; {
		case f.Method != "":
		case slices.Contains([]string{figure.PeakRSS, figure.BaselineRSS, figure.PostWarmupRSS,
			figure.IncreaseRSS}, f.Name):
			f.Method = rss
		default:
			f.Method = record.MethodSmapsRollup
		}
	}
	return figures
}
