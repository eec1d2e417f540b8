package record

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	"llmparity/internal/lines"
)

// readRows reads the CSV files concurrently, which is safe because each fills its own part of the attempts. It drops
// rows whose attempt, source or request is not in the journal: rows are flushed before it.
func (b *builder) readRows(dir string) error {
	files := []struct {
		name     string
		take     func(lines.Header) func(*lines.Row) error
		optional bool // older runs lack it
		cut      bool
		err      error
	}{
		{name: tokensFile, take: b.token}, {name: samplesFile, take: b.sample}, {name: totalsFile, take: b.total},
		{name: metricsFile, take: b.metric, optional: true}, {name: scoresFile, take: b.score, optional: true},
	}
	var all sync.WaitGroup
	for i := range files {
		f := &files[i]
		all.Go(func() {
			path := filepath.Join(dir, f.name)
			if _, err := os.Stat(path); f.optional && errors.Is(err, os.ErrNotExist) {
				return
			}
			f.cut, f.err = lines.EachRow(path, f.take)
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

func (b *builder) sample(h lines.Header) func(*lines.Row) error {
	attempt, source, at, took := h.Column("attempt"), h.Column("source"), h.Column("t_ns"), h.Column("read_ns")
	rss, vms, pss, uss := h.Column("rss_mb"), h.Column("vms_mb"), h.Column("pss_mb"), h.Column("uss_mb")
	swap, hwm, edge := h.Column("swap_mb"), h.Column("hwm_mb"), h.Optional("edge")
	phases := lines.Names{}
	return func(r *lines.Row) error {
		id := int(r.Integer(attempt))
		s := SampleRow{Source: int(r.Integer(source)), NS: r.Integer(at), ReadNS: r.Integer(took), RSS: r.Size(rss),
			VMS: r.Size(vms), PSS: r.Size(pss), USS: r.Size(uss), Swap: r.Size(swap), HWM: r.Size(hwm),
			Edge: Phase(phases.Of(r.Text(edge)))}
		if a := b.source(id, s.Source); r.Err == nil && a != nil {
			a.Samples = append(a.Samples, s)
			b.lastSample = a
		}
		return r.Err
	}
}

// source returns the attempt that announced a source.
func (b *builder) source(attempt, source int) *Attempt {
	if a := b.attempts[attempt]; a != nil {
		if _, ok := a.Sources[source]; ok {
			return a
		}
	}
	return nil
}

func (b *builder) metric(h lines.Header) func(*lines.Row) error {
	attempt, source, at, took := h.Column("attempt"), h.Column("source"), h.Column("t_ns"), h.Column("read_ns")
	name, value, edge := h.Column("name"), h.Column("value"), h.Optional("edge")
	known := lines.Names{}
	return func(r *lines.Row) error {
		id := int(r.Integer(attempt))
		m := MetricRow{Source: int(r.Integer(source)), NS: r.Integer(at), ReadNS: r.Integer(took),
			Name: known.Of(r.Text(name)), Value: r.Number(value), Edge: Phase(known.Of(r.Text(edge)))}
		if a := b.source(id, m.Source); r.Err == nil && a != nil {
			a.Metrics = append(a.Metrics, m)
			b.lastMetric = a
		}
		return r.Err
	}
}

func (b *builder) total(h lines.Header) func(*lines.Row) error {
	attempt, processes, at, took := h.Column("attempt"), h.Column("processes"), h.Column("t_ns"), h.Column("read_ns")
	rss, vms, pss, uss := h.Column("rss_sum_mb"), h.Column("vms_sum_mb"), h.Column("pss_mb"), h.Column("uss_mb")
	swap, method := h.Column("swap_mb"), h.Column("method")
	read, low, high := h.Optional("pss_read_mb"), h.Optional("pss_low_mb"), h.Optional("pss_high_mb")
	methods := lines.Names{}
	return func(r *lines.Row) error {
		a := b.attempts[int(r.Integer(attempt))]
		t := TotalRow{Method: methods.Of(r.Text(method)), Processes: int(r.Integer(processes)), NS: r.Integer(at),
			ReadNS: r.Integer(took), RSS: r.Size(rss), VMS: r.Size(vms), PSS: r.Size(pss), USS: r.Size(uss),
			Swap: r.Size(swap), Read: r.Size(read), Low: r.Size(low), High: r.Size(high)}
		if r.Err == nil && a != nil {
			a.Totals = append(a.Totals, t)
			b.lastTotal = a
		}
		return r.Err
	}
}

func (b *builder) token(h lines.Header) func(*lines.Row) error {
	attempt, request, at := h.Column("attempt"), h.Column("request"), h.Column("t_ns")
	index, id := h.Column("index"), h.Column("id")
	return func(r *lines.Row) error {
		q := b.requests[requestKey{int(r.Integer(attempt)), int(r.Integer(request))}]
		t := TokenRow{int(r.Integer(index)), int(r.Integer(id)), r.Integer(at)}
		if r.Err == nil && q != nil {
			q.Tokens = append(q.Tokens, t)
		}
		return r.Err
	}
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
