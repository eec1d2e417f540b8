package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
)

// taker takes in a file's rows. It is made when the file's columns are known, and how many rows there are at most.
type taker func(h header, rows int) func(*row) error

// readRows reads the CSV files. Each has its own part of the attempts, so they are read at the same time.
func (b *builder) readRows(dir string) error {
	samples, totals := &stretches[SampleRow]{}, &stretches[TotalRow]{}
	metrics, tokens := &stretches[MetricRow]{}, &stretches[TokenRow]{}
	files := []struct {
		name     string
		take     taker
		optional bool // older runs have none
		cut      bool
		err      error
	}{
		{name: tokensFile, take: b.token(tokens)}, {name: samplesFile, take: b.sample(samples)},
		{name: totalsFile, take: b.total(totals)},
		{name: metricsFile, take: b.metric(metrics), optional: true}, {name: scoresFile, take: b.score, optional: true},
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
	samples.deal()
	totals.deal()
	metrics.deal()
	tokens.deal()
	b.incomplete(samples, totals, metrics, cut)
	return nil
}

// eachRow reads a CSV file whose rows are single lines: no field that we write holds a newline.
func eachRow(path string, take taker) (cut bool, err error) {
	lines, size, err := count(path)
	if err != nil {
		return false, notARun(err, filepath.Dir(path))
	}
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
			columns = len(r.fields)
			add = take(h, min(lines, int(size)/columns)) // a row has a comma or a newline a column
			return nil
		}
		if len(r.fields) != columns {
			return fmt.Errorf("%d fields, the header has %d", len(r.fields), columns)
		}
		return add(&r)
	})
}

// count counts a file's lines, so that its rows get the room that they need and no more.
func count(path string) (lines int, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	buffer := make([]byte, 256<<10)
	for {
		n, err := file.Read(buffer)
		lines += bytes.Count(buffer[:n], []byte("\n"))
		size += int64(n)
		if errors.Is(err, io.EOF) {
			return lines, size, nil
		}
		if err != nil {
			return lines, size, err
		}
	}
}

// stretches are a file's rows, and whose they are. Those of one attempt stand together, so that each gets a part of
// them and nothing is copied.
type stretches[T any] struct {
	rows []T
	of   []stretch[T]
}

// stretch is the rows from begin to the next stretch's begin.
type stretch[T any] struct {
	to    *[]T
	begin int
}

func (s *stretches[T]) add(to *[]T, row T) {
	if n := len(s.of); n == 0 || s.of[n-1].to != to {
		s.of = append(s.of, stretch[T]{to, len(s.rows)})
	}
	s.rows = append(s.rows, row)
}

// deal gives everybody their rows, in the file's order.
func (s *stretches[T]) deal() {
	for i, o := range s.of {
		end := len(s.rows)
		if i+1 < len(s.of) {
			end = s.of[i+1].begin
		}
		part := s.rows[o.begin:end:end]
		if *o.to == nil {
			*o.to = part
		} else {
			*o.to = append(*o.to, part...)
		}
	}
}

// Rows of an attempt, source or request that never reached the journal are dropped: rows are flushed before it.

func (b *builder) sample(into *stretches[SampleRow]) taker {
	return func(h header, rows int) func(*row) error {
		attempt, source, at, took := h.column("attempt"), h.column("source"), h.column("t_ns"), h.column("read_ns")
		rss, vms, pss, uss := h.column("rss_mb"), h.column("vms_mb"), h.column("pss_mb"), h.column("uss_mb")
		swap, hwm, edge := h.column("swap_mb"), h.column("hwm_mb"), h.column("edge")
		phases := names{}
		var rare []rareRow // with room: rows point to them
		into.rows = make([]SampleRow, 0, rows)
		return func(r *row) error {
			id := int(r.integer(attempt))
			s := SampleRow{Source: int(r.integer(source)), NS: r.integer(at), ReadNS: r.integer(took), RSS: r.size(rss),
				VMS: r.size(vms),
				PSS: r.size(pss)}
			others := rareRow{uss: r.size(uss), swap: r.size(swap), hwm: r.size(hwm)}
			if edge.there() {
				others.edge = Phase(phases.of(r.text(edge)))
			}
			if r.err != nil {
				return r.err
			}
			a, ok := b.attempts[id]
			if !ok {
				return nil
			}
			if _, ok := a.Sources[s.Source]; !ok {
				return nil
			}
			if !others.empty() {
				if len(rare) == cap(rare) {
					rare = make([]rareRow, 0, 256)
				}
				rare = append(rare, others)
				s.rare = &rare[len(rare)-1]
			}
			into.add(&a.Samples, s)
			return nil
		}
	}
}

func (o rareRow) empty() bool {
	return math.IsNaN(o.uss) && math.IsNaN(o.swap) && math.IsNaN(o.hwm) && o.edge == ""
}

func (b *builder) metric(into *stretches[MetricRow]) taker {
	return func(h header, rows int) func(*row) error {
		attempt, source, at, took := h.column("attempt"), h.column("source"), h.column("t_ns"), h.column("read_ns")
		name, value, edge := h.column("name"), h.column("value"), h.column("edge")
		known := names{}
		into.rows = make([]MetricRow, 0, rows)
		return func(r *row) error {
			id := int(r.integer(attempt))
			m := MetricRow{Source: int(r.integer(source)), NS: r.integer(at), ReadNS: r.integer(took)}
			called := r.text(name)
			m.Value = r.number(value)
			if r.err != nil {
				return r.err
			}
			a, ok := b.attempts[id]
			if !ok {
				return nil
			}
			if _, ok := a.Sources[m.Source]; !ok {
				return nil
			}
			m.Name = known.of(called)
			if edge.there() {
				m.Edge = Phase(known.of(r.text(edge)))
			}
			into.add(&a.Metrics, m)
			return nil
		}
	}
}

func (b *builder) total(into *stretches[TotalRow]) taker {
	return func(h header, rows int) func(*row) error {
		attempt, processes, at, took := h.column("attempt"), h.column("processes"), h.column("t_ns"),
			h.column("read_ns")
		rss, vms, pss, uss := h.column("rss_sum_mb"), h.column("vms_sum_mb"), h.column("pss_mb"), h.column("uss_mb")
		swap, method := h.column("swap_mb"), h.column("method")
		// older runs have none
		read, low, high := h.column("pss_read_mb"), h.column("pss_low_mb"), h.column("pss_high_mb")
		carried := read.there() && low.there() && high.there()
		methods := names{}
		into.rows = make([]TotalRow, 0, rows)
		return func(r *row) error {
			id := int(r.integer(attempt))
			t := TotalRow{Processes: int(r.integer(processes)), NS: r.integer(at), ReadNS: r.integer(took),
				RSS: r.size(rss), VMS: r.size(vms),
				PSS: r.size(pss), USS: r.size(uss), Swap: r.size(swap), Read: math.NaN(), Low: math.NaN(),
				High: math.NaN()}
			if carried {
				t.Read, t.Low, t.High = r.size(read), r.size(low), r.size(high)
			}
			by := r.text(method)
			if r.err != nil {
				return r.err
			}
			if a, ok := b.attempts[id]; ok {
				t.Method = methods.of(by)
				into.add(&a.Totals, t)
			}
			return nil
		}
	}
}

func (b *builder) token(into *stretches[TokenRow]) taker {
	return func(h header, rows int) func(*row) error {
		attempt, request, index, id, at := h.column("attempt"), h.column("request"), h.column("index"), h.column("id"),
			h.column("t_ns")
		into.rows = make([]TokenRow, 0, rows)
		return func(r *row) error {
			key := requestKey{int(r.integer(attempt)), int(r.integer(request))}
			t := TokenRow{int(r.integer(index)), int(r.integer(id)), r.integer(at)}
			if r.err != nil {
				return r.err
			}
			if q := b.requests[key]; q != nil {
				into.add(&q.Tokens, t)
			}
			return nil
		}
	}
}
