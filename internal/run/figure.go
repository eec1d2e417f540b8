package run

import (
	"math"
	"slices"
	"time"

	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// awaitedOf is what an attempt's requests come to: the median over them, as records' readers work it out; NaN where
// there is none.
func awaitedOf(name string, all []measured) float64 {
	var values []float64
	for _, m := range all {
		if v := m.figure(name); !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	return median(values)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// figure of one request, in tokens a second or in milliseconds. What it waited until it was sent is in its times.
func (m measured) figure(name string) float64 {
	if len(m.tokens) == 0 {
		return math.NaN()
	}
	first, last := m.tokens[0].At, m.tokens[len(m.tokens)-1].At
	began := m.usage.Sent
	if !m.due.IsZero() && m.due.Before(began) {
		began = m.due
	}
	switch name {
	case figure.TTFT:
		return milliseconds(first.Sub(began))
	case figure.Latency:
		return milliseconds(m.ended().Sub(began))
	}
	n := len(m.tokens)
	if m.usage.Generated > 0 { // it told of pieces, which are taken for alike
		n = m.usage.Generated
	}
	if took := last.Sub(first); took > 0 && len(m.tokens) > 1 {
		return float64(n-1) / took.Seconds()
	}
	return math.NaN()
}

func (m measured) ended() time.Time {
	if !m.usage.Returned.IsZero() {
		return m.usage.Returned
	}
	return m.returned
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// remembered is a request as the record has it.
func remembered(q *record.Request) measured {
	at := func(ns int64) time.Time { return time.Unix(0, ns) }
	m := measured{usage: record.Usage{Sent: at(q.SentNS), Generated: q.Generated}, returned: at(q.ReturnedNS)}
	if q.Due > 0 {
		m.due = at(q.Due)
	}
	for _, t := range q.Tokens {
		m.tokens = append(m.tokens, record.Token{Index: t.Index, ID: t.ID, At: at(t.NS)})
	}
	return m
}
