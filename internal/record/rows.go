package record

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
)

// taker returns a function that reads the rows of a file with the given columns.
type taker func(header) func(*row) error

// readRows reads the CSV files concurrently, which is safe because each fills its own part of the attempts. It drops
// rows whose attempt, source or request is not in the journal: rows are flushed before it.
func (b *builder) readRows(dir string) error {
	files := []struct {
		name     string
		take     taker
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
			f.cut, f.err = eachRow(path, f.take)
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

// eachRow reads a CSV file in which each row is one line.
func eachRow(path string, take taker) (cut bool, err error) {
	var r row
	var add func(*row) error
	columns := 0
	return eachLine(path, func(line []byte) error {
		if err := r.split(line); err != nil {
			return err
		}
		if add == nil {
			h, err := newHeader(r.fields)
			if err != nil {
				return err
			}
			columns, add = len(r.fields), take(h)
			return nil
		}
		if len(r.fields) != columns {
			return fmt.Errorf("%d fields, but the header has %d", len(r.fields), columns)
		}
		return add(&r)
	})
}

func (b *builder) sample(h header) func(*row) error {
	attempt, source, at, took := h.column("attempt"), h.column("source"), h.column("t_ns"), h.column("read_ns")
	rss, vms, pss, uss := h.column("rss_mb"), h.column("vms_mb"), h.column("pss_mb"), h.column("uss_mb")
	swap, hwm, edge := h.column("swap_mb"), h.column("hwm_mb"), h.column("edge")
	phases := names{}
	return func(r *row) error {
		id := int(r.integer(attempt))
		s := SampleRow{Source: int(r.integer(source)), NS: r.integer(at), ReadNS: r.integer(took), RSS: r.size(rss),
			VMS: r.size(vms), PSS: r.size(pss)}
		others := rareRow{uss: r.size(uss), swap: r.size(swap), hwm: r.size(hwm)}
		if edge.there() {
			others.edge = Phase(phases.of(r.text(edge)))
		}
		if a := b.source(id, s.Source); r.err == nil && a != nil {
			if !others.empty() {
				s.rare = &rareRow{others.uss, others.swap, others.hwm, others.edge}
			}
			a.Samples = append(a.Samples, s)
			b.lastSample = a
		}
		return r.err
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

func (o rareRow) empty() bool {
	return math.IsNaN(o.uss) && math.IsNaN(o.swap) && math.IsNaN(o.hwm) && o.edge == ""
}

func (b *builder) metric(h header) func(*row) error {
	attempt, source, at, took := h.column("attempt"), h.column("source"), h.column("t_ns"), h.column("read_ns")
	name, value, edge := h.column("name"), h.column("value"), h.column("edge")
	known := names{}
	return func(r *row) error {
		id := int(r.integer(attempt))
		m := MetricRow{Source: int(r.integer(source)), NS: r.integer(at), ReadNS: r.integer(took),
			Name: known.of(r.text(name)), Value: r.number(value)}
		if edge.there() {
			m.Edge = Phase(known.of(r.text(edge)))
		}
		if a := b.source(id, m.Source); r.err == nil && a != nil {
			a.Metrics = append(a.Metrics, m)
			b.lastMetric = a
		}
		return r.err
	}
}

func (b *builder) total(h header) func(*row) error {
	attempt, processes, at, took := h.column("attempt"), h.column("processes"), h.column("t_ns"), h.column("read_ns")
	rss, vms, pss, uss := h.column("rss_sum_mb"), h.column("vms_sum_mb"), h.column("pss_mb"), h.column("uss_mb")
	swap, method := h.column("swap_mb"), h.column("method")
	// absent in older runs
	read, low, high := h.column("pss_read_mb"), h.column("pss_low_mb"), h.column("pss_high_mb")
	carried := read.there() && low.there() && high.there()
	methods := names{}
	return func(r *row) error {
		a := b.attempts[int(r.integer(attempt))]
		t := TotalRow{Method: methods.of(r.text(method)), Processes: int(r.integer(processes)), NS: r.integer(at),
			ReadNS: r.integer(took), RSS: r.size(rss), VMS: r.size(vms), PSS: r.size(pss), USS: r.size(uss),
			Swap: r.size(swap), Read: math.NaN(), Low: math.NaN(), High: math.NaN()}
		if carried {
			t.Read, t.Low, t.High = r.size(read), r.size(low), r.size(high)
		}
		if r.err == nil && a != nil {
			a.Totals = append(a.Totals, t)
			b.lastTotal = a
		}
		return r.err
	}
}

func (b *builder) token(h header) func(*row) error {
	attempt, request, at := h.column("attempt"), h.column("request"), h.column("t_ns")
	index, id := h.column("index"), h.column("id")
	return func(r *row) error {
		q := b.requests[requestKey{int(r.integer(attempt)), int(r.integer(request))}]
		t := TokenRow{int(r.integer(index)), int(r.integer(id)), r.integer(at)}
		if r.err == nil && q != nil {
			q.Tokens = append(q.Tokens, t)
		}
		return r.err
	}
}
