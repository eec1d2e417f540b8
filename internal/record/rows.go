package record

import (
	"math"
	"path/filepath"
	"sync"

	"llmparity/internal/kit/lines"
)

// readRows reads the CSV files concurrently, which is safe because each fills its own part of the attempts. It drops
// rows whose attempt, source or request is not in the journal: rows are flushed before it.
func (b *builder) readRows(dir string) error {
	files := []struct {
		name    string
		columns []string
		take    func(*lines.Row) error
		cut     bool
		err     error
	}{
		{name: tokensFile, columns: tokenColumns, take: b.token},
		{name: samplesFile, columns: sampleColumns, take: b.sample},
		{name: totalsFile, columns: totalColumns, take: b.total},
		{name: metricsFile, columns: metricColumns, take: b.metric},
		{name: scoresFile, columns: scoreColumns, take: b.score},
	}
	var all sync.WaitGroup
	for i := range files {
		f := &files[i]
		all.Go(func() {
			f.cut, f.err = lines.EachRow(filepath.Join(dir, f.name), f.columns, f.take)
		})
	}
	all.Wait()
	cut := map[string]bool{}
	for _, f := range files {
		if f.err != nil {
			return f.err
		}
		b.run.warnCut(f.cut, f.name)
		cut[f.name] = f.cut
	}
	b.incomplete(cut)
	return nil
}

// The columns of the CSV files, in the order in which they are read.
var (
	sampleColumns = []string{"attempt", "source", "t_ns", "read_ns", "rss_mb", "vms_mb", "pss_mb", "uss_mb", "swap_mb",
		"hwm_mb", "edge"}
	metricColumns = []string{"attempt", "source", "t_ns", "read_ns", "name", "value", "edge"}
	totalColumns  = []string{"attempt", "method", "processes", "t_ns", "read_ns", "rss_sum_mb", "vms_sum_mb", "pss_mb",
		"uss_mb", "swap_mb", "pss_read_mb", "pss_low_mb", "pss_high_mb"}
	tokenColumns = []string{"attempt", "request", "index", "id", "t_ns"}
	scoreColumns = []string{"attempt", "position", "rank", "id", "forced", "logprob"}
)

func (b *builder) sample(r *lines.Row) error {
	a := b.attempts[r.Int()]
	s := SampleRow{Source: r.Int(), NS: r.Integer(), ReadNS: r.Integer(), RSS: r.Size(), VMS: r.Size(), PSS: r.Size(),
		USS: r.Size(), Swap: r.Size(), HWM: r.Size(), Edge: Phase(r.Text())}
	if r.Err == nil && a.reads(s.Source) {
		a.Samples = append(a.Samples, s)
		b.lastSample = a
	}
	return r.Err
}

// reads reports whether the attempt announced a source.
func (a *Attempt) reads(source int) bool {
	if a == nil {
		return false
	}
	_, ok := a.Sources[source]
	return ok
}

func (b *builder) metric(r *lines.Row) error {
	a := b.attempts[r.Int()]
	m := MetricRow{Source: r.Int(), NS: r.Integer(), ReadNS: r.Integer(), Name: r.Text(), Value: r.Number(),
		Edge: Phase(r.Text())}
	if r.Err == nil && a.reads(m.Source) {
		a.Metrics = append(a.Metrics, m)
		b.lastMetric = a
	}
	return r.Err
}

func (b *builder) total(r *lines.Row) error {
	a := b.attempts[r.Int()]
	t := TotalRow{Method: r.Text(), Processes: r.Int(), NS: r.Integer(), ReadNS: r.Integer(), RSS: r.Size(),
		VMS: r.Size(), PSS: r.Size(), USS: r.Size(), Swap: r.Size(), Read: r.Size(), Low: r.Size(), High: r.Size()}
	if r.Err == nil && a != nil {
		a.Totals = append(a.Totals, t)
		b.lastTotal = a
	}
	return r.Err
}

func (b *builder) token(r *lines.Row) error {
	q := b.requests[requestKey{r.Int(), r.Int()}]
	t := TokenRow{r.Int(), r.Int(), r.Integer()}
	if r.Err == nil && q != nil {
		q.Tokens = append(q.Tokens, t)
	}
	return r.Err
}

// score drops rows of attempts that are not in the journal, as for samples.
func (b *builder) score(r *lines.Row) error {
	a, position, rank, c, forced := b.attempts[r.Int()], r.Int(), r.Int(), Candidate{ID: r.Int()}, r.Int()
	c.LogProb = r.Perhaps()
	if r.Err != nil || a == nil || a.Scoring == nil {
		return r.Err
	}
	if n := len(a.Scores); n == 0 || a.Scores[n-1].Position != position {
		a.Scores = append(a.Scores, Score{Position: position, Forced: NoID, LogProb: math.NaN()})
	}
	s := &a.Scores[len(a.Scores)-1]
	if forced == 1 {
		s.Forced, s.LogProb = c.ID, c.LogProb
	}
	if rank > 0 {
		s.Top = append(s.Top, c)
	}
	return nil
}

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
