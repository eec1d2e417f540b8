package prompts

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
	"llmparity/internal/record"
)

// ReadTrace reads a trace: when requests arrived, their prompt lengths and output lengths, as CSV with a header or JSON
// lines. Times count from the first request. limit is the most requests; 0: all.
func ReadTrace(path string, limit int) ([]record.Arrival, error) {
	text, err := regular.Read(path, mostBytes)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "", "can't read the trace %s", path)
	}
	return ParseTrace(text, path, limit)
}

// ParseTrace parses a trace; name is its name in errors.
func ParseTrace(text []byte, name string, limit int) ([]record.Arrival, error) {
	t := &trace{limit: limit}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	start := bytes.TrimLeft(text, " \t\r\n")
	var err error
	if len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		err = objects(text, name, t.object)
	} else {
		err = t.table(text, name)
	}
	if err != nil {
		return nil, err
	}
	if len(t.arrivals) == 0 {
		return nil, fault.New(fault.Usage, "", "trace %s: no requests", name)
	}
	return t.arrivals, nil
}

// trace is the state of parsing a trace.
type trace struct {
	limit    int
	first    float64
	arrivals []record.Arrival
}

// Names of columns in lower case, including those of published traces.
var (
	timeNames  = []string{"time", "at", "timestamp", "arrival_time", "arrived_at", "time_s"}
	milliNames = []string{"time_ms", "timestamp_ms"}
	inputNames = []string{"input_tokens", "input_length", "contexttokens", "request tokens", "prompt_tokens",
		"num_prefill_tokens"}
	outputNames = []string{"output_tokens", "output_length", "generatedtokens", "response tokens", "max_tokens",
		"completion_tokens", "num_decode_tokens"}
)

// columns are our names of the three columns.
var columns = [3]string{"time", "input_tokens", "output_tokens"}

// column returns which of the three columns a name means, and the divisor of its times.
func column(name string) (which int, by float64) {
	name = strings.ToLower(strings.TrimSpace(name))
	for i, names := range [][]string{timeNames, milliNames, inputNames, outputNames} {
		if slices.Contains(names, name) {
			return []int{0, 0, 1, 2}[i], []float64{1, 1e3, 1, 1}[i]
		}
	}
	return -1, 1
}

// table parses CSV.
func (t *trace) table(text []byte, name string) error {
	r := csv.NewReader(bytes.NewReader(text))
	r.ReuseRecord, r.TrimLeadingSpace = true, true
	head, err := r.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return broken(name, err)
	}
	places, by := [3]int{-1, -1, -1}, 1.0
	for i, name := range head {
		if which, divided := column(name); which >= 0 && places[which] < 0 {
			places[which] = i
			by *= divided
		}
	}
	if which := slices.Index(places[:], -1); which >= 0 {
		return at(name, 1, fmt.Errorf("no column %s; want a header such as time,input_tokens,output_tokens", columns[which]))
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(name, err)
		}
		if more, err := t.add(row[places[0]], row[places[1]], row[places[2]], by); err != nil {
			line, _ := r.FieldPos(0)
			return at(name, line, err)
		} else if !more {
			return nil
		}
	}
}

// broken adds the line of a CSV error.
func broken(name string, err error) error {
	if p, ok := errors.AsType[*csv.ParseError](err); ok {
		return at(name, p.Line, p.Err)
	}
	return at(name, 1, err)
}

// object parses a JSON object.
func (t *trace) object(object map[string]json.RawMessage) (more bool, err error) {
	var said [3]string
	by := 1.0
	for name, value := range object {
		which, divided := column(name)
		if which < 0 {
			continue
		}
		if said[which] != "" {
			return false, fmt.Errorf("duplicate %s", [3]string{"time", "prompt length", "output length"}[which])
		}
		said[which] = strings.Trim(string(value), `"`)
		by *= divided
	}
	if object["hash_ids"] != nil { // a published format with times in milliseconds
		by = 1e3
	}
	if which := slices.Index(said[:], ""); which >= 0 {
		return false, fmt.Errorf("no field %s", columns[which])
	}
	return t.add(said[0], said[1], said[2], by)
}

// add adds a request.
func (t *trace) add(when, input, output string, by float64) (more bool, err error) {
	at, err := moment(when)
	if err != nil {
		return false, err
	}
	at /= by
	if len(t.arrivals) == 0 {
		t.first = at
	}
	a := record.Arrival{At: at - t.first}
	if n := len(t.arrivals); n > 0 && a.At < t.arrivals[n-1].At {
		return false, errors.New("earlier than the previous request; sort requests by time")
	}
	if a.At > 1e8 {
		return false, fmt.Errorf("%.0f days after the first request; the maximum is 1157", a.At/86400)
	}
	for _, n := range []struct {
		name, text string
		to         *int
	}{{"input", input, &a.InputTokens}, {"output", output, &a.MaxTokens}} {
		v, err := strconv.Atoi(strings.TrimSpace(n.text))
		if err != nil || v < 1 || v > MostTokens {
			return false, fmt.Errorf("%s length is %q, want a whole number from 1 to %d; leave out requests without tokens",
				n.name, short(n.text), MostTokens)
		}
		*n.to = v
	}
	if len(t.arrivals) == mostItems {
		return false, fmt.Errorf("more than %d requests", mostItems)
	}
	t.arrivals = append(t.arrivals, a)
	return t.limit == 0 || len(t.arrivals) < t.limit, nil
}

func short(text string) string { return text[:min(len(text), 40)] }

// moment parses a time: a number of seconds, or a date with time.
func moment(text string) (float64, error) {
	text = strings.TrimSpace(text)
	if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) && math.Abs(v) < 1e16 {
		return v, nil
	}
	for _, form := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999",
		"2006-01-02 15:04:05.999999999-07:00"} {
		if at, err := time.Parse(form, text); err == nil {
			// not from 1970, because a float64 would only have microseconds
			return at.Sub(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)).Seconds(), nil
		}
	}
	return 0, fmt.Errorf("time %q is neither a number of seconds nor a date such as 2026-01-31 12:00:00.5",
		short(text))
}
