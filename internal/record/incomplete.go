package record

// apart is the longest time, in nanoseconds, between the last rows of one moment. Nothing is sampled more often.
const apart = 1e6

// incomplete drops readings of successful attempts whose files were cut later, and warns: the highest of the remaining
// readings would pass for the peak. Rows reach the disk before the end of their attempt reaches the journal.
//
// samples.csv and totals.csv have rows for the same moments, so the file that ends earlier is cut. metrics.csv has no
// such counterpart: only a cut line gives it away.
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
			a.miss(samplesFile, "memory of each process")
		}
		if neither || sampled-summed > apart || cut[totalsFile] && a == b.lastTotal {
			a.Totals = nil
			a.miss(totalsFile, "total memory")
		}
		if cut[metricsFile] && a == b.lastMetric {
			a.Metrics = nil
			a.miss(metricsFile, "other readings")
		}
	}
}

// readsProcesses reports whether the attempt reads memory of processes.
func (a *Attempt) readsProcesses() bool {
	for _, s := range a.Sources {
		if s.Method == MethodStatm || s.Method == MethodSmapsRollup {
			return true
		}
	}
	return false
}

func (a *Attempt) miss(file, what string) {
	a.Warnings = append(a.Warnings, Warnf("readings-missing", "%s: %s not available: the file was cut after the run",
		file, what))
}
