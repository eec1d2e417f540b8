package record

import "fmt"

// apart is the most nanoseconds between the last rows of one moment: nothing is read that often.
const apart = 1e6

// incomplete drops readings of which a launch that ended well has only the first part, and warns of it: rows are on the
// disk before the journal tells the end, so somebody cut the file, or copied half of it. The highest of half of the
// readings would pass for a peak.
//
// Rows of processes and their sums are written for the same moments, so whichever end earlier are not whole. Values of
// metrics.csv have no such witness: they are known to be cut where a line is.
func (b *builder) incomplete(cut map[string]bool) {
	for _, a := range b.run.Attempts {
		if a.Status != OK || !a.readsProcesses() {
			continue
		}
		sampled, summed := int64(-1), int64(-1)
		if n := len(a.Samples); n > 0 {
			sampled = a.Samples[n-1].NS
		}
		if n := len(a.Totals); n > 0 {
			summed = a.Totals[n-1].NS
		}
		neither := sampled < 0 && summed < 0 && a.Cost.Reads > 0
		if neither || summed-sampled > apart || cut[samplesFile] && a == b.lastSample {
			a.Samples = nil
			a.miss(samplesFile, "what single processes held")
		}
		if neither || sampled-summed > apart || cut[totalsFile] && a == b.lastTotal {
			a.Totals = nil
			a.miss(totalsFile, "the launch's memory")
		}
		if cut[metricsFile] && a == b.lastMetric {
			a.Metrics = nil
			a.miss(metricsFile, "what else was read")
		}
	}
}

// readsProcesses tells whether memory of processes was read, as it is of whatever we started.
func (a *Attempt) readsProcesses() bool {
	for _, s := range a.Sources {
		if s.Method == MethodStatm || s.Method == MethodSmapsRollup {
			return true
		}
	}
	return false
}

func (a *Attempt) miss(file, what string) {
	a.Warnings = append(a.Warnings, Warning{Code: "readings-missing", Text: fmt.Sprintf(
		"%s does not have all of its readings, though it ended well: the file was cut, and %s is not known", file,
		what)})
}
