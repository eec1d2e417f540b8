package record

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fields reads a line as the standard library does; false where the two need not agree: it takes line breaks in other
// ways, and no quotation mark in a field without quotes.
func fields(line string) (out []string, fails, comparable bool) {
	if line == "" || strings.ContainsAny(line, "\r\n") {
		return nil, false, false
	}
	r := csv.NewReader(strings.NewReader(line))
	r.FieldsPerRecord = -1
	out, err := r.Read()
	if err == nil {
		return out, false, true
	}
	bare := strings.Contains(err.Error(), csv.ErrBareQuote.Error())
	return nil, true, !bare
}

// simple reads samples.csv as one would without a care for time: a map a row, and the standard library for the rest. It
// gives the samples of each attempt, or the line at which it is wrong; false where the two readers need not agree.
func simple(text string, attempts map[int]*Attempt) (samples map[int][]SampleRow, wrong int, comparable bool) {
	samples = map[int][]SampleRow{}
	var header []string
	end := strings.LastIndexByte(text, '\n')
	if end < 0 {
		return samples, 0, true
	}
	for i, line := range strings.Split(text[:end], "\n") {
		row, fails, comparable := fields(line)
		if !comparable {
			return nil, 0, false
		}
		if fails {
			return nil, i + 1, true
		}
		if header == nil {
			if header = row; len(slices.Compact(slices.Sorted(slices.Values(header)))) != len(header) {
				return nil, 1, true
			}
			continue
		}
		of := map[string]string{}
		for at, name := range header {
			if at < len(row) {
				of[name] = row[at]
			}
		}
		s, attempt, ok := simpleSample(of)
		if !ok || len(row) != len(header) {
			return nil, i + 1, true
		}
		if a := attempts[attempt]; a != nil {
			if _, known := a.Sources[s.Source]; known {
				samples[attempt] = append(samples[attempt], s)
			}
		}
	}
	return samples, 0, true
}

func simpleSample(of map[string]string) (s SampleRow, attempt int, ok bool) {
	ok = true
	whole := func(name string) int64 {
		n, err := strconv.ParseInt(of[name], 10, 64)
		ok = ok && err == nil
		return n
	}
	size := func(name string) float64 {
		text, there := of[name]
		if there && text == "" {
			return math.NaN()
		}
		f, err := strconv.ParseFloat(text, 64)
		ok = ok && err == nil && f >= 0 && !math.IsInf(f, 0)
		return f
	}
	attempt = int(whole("attempt"))
	s = SampleRow{Source: int(whole("source")), NS: whole("t_ns"), ReadNS: whole("read_ns"), RSS: size("rss_mb"),
		VMS: size("vms_mb"),
		PSS: size("pss_mb"), rare: &rareRow{size("uss_mb"), size("swap_mb"), size("hwm_mb"), Phase(of["edge"])}}
	return s, attempt, ok
}

// FuzzSamples holds the reader against the simple one.
func FuzzSamples(f *testing.F) {
	header := strings.Join(sampleColumns, ",")
	row := func(attempt, source int, rest string) string {
		return fmt.Sprintf("2026-03-14T09:26:55.100000Z,\"webllm, c1\",42,3.5000,4.0000,123456789,9000,%d,1,%d,renderer,%s\n", source, attempt, rest)
	}
	f.Add([]byte(header + "\n" + row(1, 1, ",,,,") + row(1, 2, "1.2500,0.5000,0.0000,7.7500,load") + row(2, 1, ",,,,") +
		row(1, 1, ",,,,")))
	f.Add([]byte(header + "\n" + row(1, 7, ",,,,") + row(9, 1, ",,,,") + "2026-03-14T09:26:55.1"))
	f.Add([]byte(header + "\n" + row(1, 1, "x,,,,")))
	f.Add([]byte(header + "\n" + row(1, 1, ",,,,nowhere")))
	f.Add([]byte(strings.TrimSuffix(header, ",edge") + "\n" + row(1, 1, ",,,")))
	f.Add([]byte("attempt,attempt\n1,1\n"))
	f.Add([]byte("edge,hwm_mb,swap_mb,uss_mb,pss_mb,attempt,source,read_ns,t_ns,vms_mb,rss_mb\nidle,1e2,,,-0,1,2,-5,+6,0x1p2,3\n,,,,,1,1,1,1,,\n"))
	path := filepath.Join(f.TempDir(), samplesFile)
	f.Fuzz(func(t *testing.T, text []byte) {
		attempts := map[int]*Attempt{1: {Sources: map[int]Source{1: {}, 2: {}}}, 2: {Sources: map[int]Source{1: {}}}}
		want, wrong, comparable := simple(string(text), attempts)
		put(t, path, text)
		b := &builder{attempts: attempts}
		cut, err := eachRow(path, b.sample)
		if !comparable {
			return
		}
		if wrong > 0 {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("line %d:", wrong)) {
				t.Fatalf("%v, and line %d is wrong", err, wrong)
			}
			return
		}
		check(t, err)
		if cut != (len(text) > 0 && !bytes.HasSuffix(text, []byte("\n"))) {
			t.Errorf("the last line is cut: %v", cut)
		}
		for id, a := range attempts {
			if got := reported(a.Samples); got != reported(want[id]) {
				t.Errorf("attempt %d:\n%s, want\n%s", id, got, reported(want[id]))
			}
		}
	})
}

// reported has NaN equal to NaN.
func reported(samples []SampleRow) string {
	var b strings.Builder
	for _, s := range samples {
		fmt.Fprintln(&b, s.Source, s.NS, s.ReadNS, s.RSS, s.VMS, s.PSS, s.USS(), s.Swap(), s.HWM(), s.Edge())
	}
	return b.String()
}
