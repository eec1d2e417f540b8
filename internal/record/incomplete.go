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
func (b *builder) incomplete(samples *stretches[SampleRow], totals *stretches[TotalRow], metrics *stretches[MetricRow],
	cut map[string]bool) {
	lastSamples, lastTotals, lastMetrics := samples.last(cut[samplesFile]), totals.last(cut[totalsFile]),
		metrics.last(cut[metricsFile])
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
		if noSamples := summed-sampled > apart || &a.Samples == lastSamples; noSamples || sampled < 0 && summed < 0 &&
			a.Cost.Reads > 0 {
			a.Samples = nil
			a.miss(samplesFile, "what single processes held")
		}
		if noTotals := sampled-summed > apart || &a.Totals == lastTotals; noTotals || sampled < 0 && summed < 0 &&
			a.Cost.Reads > 0 {
			a.Totals = nil
			a.miss(totalsFile, "the launch's memory")
		}
		if &a.Metrics == lastMetrics {
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

// last is whose rows a file ends with; nil where its last line is whole.
func (s *stretches[T]) last(cut bool) *[]T {
	if !cut || len(s.of) == 0 {
		return nil
	}
	return s.of[len(s.of)-1].to
}
