// Package startup reads what vLLM and SGLang log while they start: sizes of weights, KV cache and captured graphs, and
// the version. Their logs are meant for people, so only formats of known versions are recognized, and what is missing
// is unknown.
//
// A server with several devices logs its sizes once for each; they are added up. Sizes are rounded as the log has them.
package startup

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"llmparity/internal/record"
	"llmparity/native/logs"
)

// Said is what a log has said. Zero is unknown.
type Said struct {
	Version string
	// Bytes, over all devices.
	Weights, Graphs, KV float64
	Tokens              int // that fit in the KV cache
	Blocks              int // of the KV cache; older vLLM logs them instead of tokens
	Loading, Starting   time.Duration
}

// Log reads a log while it is written.
type Log struct {
	mu    sync.Mutex
	lines logs.Lines
	said  Said
	of    map[string]float64 // bytes by kind and device; a later line of a device replaces an earlier one
}

// New makes a reader.
func New() *Log {
	l := &Log{of: map[string]float64{}}
	l.lines = logs.Lines{Max: 4096, Take: l.take} // the lines with sizes are short
	return l
}

// Write never fails.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(b)
}

// Said returns what the log has said so far.
func (l *Log) Said() Said {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.said
	for _, name := range slices.Sorted(maps.Keys(l.of)) {
		kind, _, _ := strings.Cut(name, " ")
		*map[string]*float64{"weights": &s.Weights, "graphs": &s.Graphs, "kv": &s.KV}[kind] += l.of[name]
	}
	return s
}

// Values returns the sizes under the names that records use.
func (s Said) Values() map[string]float64 {
	out := map[string]float64{"weights_bytes": s.Weights, "kv_reserved_bytes": s.KV, "graphs_bytes": s.Graphs,
		"kv_cells_count": float64(s.Tokens)}
	maps.DeleteFunc(out, func(_ string, v float64) bool { return v <= 0 })
	return out
}

const (
	number = `([0-9]+(?:\.[0-9]+)?)`
	whole  = `([0-9][0-9,]*)`
)

// Formats of lines. The first is that of current versions.
var (
	versions = []*regexp.Regexp{
		regexp.MustCompile(`Initializing an? (?:V[01] )?LLM engine \(v([^)\s]{1,64})\)`),
		regexp.MustCompile(`\bversion ([0-9][^\s]{0,63})$`), // the banner's
	}
	weights = []*regexp.Regexp{
		regexp.MustCompile(`\bModel loading took ` + number + ` GiB`),
		regexp.MustCompile(`\bLoading model weights took ` + number + ` GB`), // vLLM up to 0.6; means GiB
		regexp.MustCompile(`\bLoad weight end\..*\bmem usage=` + number + ` GB`),
	}
	graphs = []*regexp.Regexp{
		regexp.MustCompile(`\bGraph capturing finished in .* took ` + number + ` GiB`),
		regexp.MustCompile(`\bCapture cuda graph end\..*\bmem usage=` + number + ` GB`),
	}
	keysValues = regexp.MustCompile(`\bKV Cache is allocated\..*#tokens: ` + whole + `, K size: ` + number +
		` GB, V size: ` + number + ` GB`)
	tokens   = regexp.MustCompile(`\b[A-Z]+ KV cache size: ` + whole + ` tokens`)
	blocks   = regexp.MustCompile(`# [A-Za-z]+ blocks: ` + whole + `, # CPU blocks: `)
	loading  = regexp.MustCompile(`\bLoading weights took ` + number + ` seconds`)
	starting = regexp.MustCompile(`\binit engine \(.*\) took ` + number + ` s(?:econds)?\b`)
	device   = regexp.MustCompile(`\b(?:TP|DP|PP|EP)_?[0-9]+(?:_?(?:TP|DP|PP|EP)_?[0-9]+)*\b|\bpid=[0-9]+`)
)

// take parses a line.
func (l *Log) take(line string) {
	line = strings.TrimRight(line, "\r. ")
	s := &l.said
	if v := first(versions, line); v != "" {
		s.Version = cmp.Or(s.Version, v)
	}
	l.size("weights", first(weights, line), line)
	l.size("graphs", first(graphs, line), line)
	if m := keysValues.FindStringSubmatch(line); m != nil {
		s.Tokens = count(m[1]) // each device has a part of every token
		l.of["kv "+device.FindString(line)] = gibibytes(m[2]) + gibibytes(m[3])
	}
	if m := tokens.FindStringSubmatch(line); m != nil {
		s.Tokens = count(m[1])
	}
	if m := blocks.FindStringSubmatch(line); m != nil {
		s.Blocks = count(m[1])
	}
	if m := loading.FindStringSubmatch(line); m != nil {
		s.Loading = max(s.Loading, seconds(m[1]))
	}
	if m := starting.FindStringSubmatch(line); m != nil {
		s.Starting = max(s.Starting, seconds(m[1]))
	}
}

// size notes a size of a line's device.
func (l *Log) size(kind, text, line string) {
	if text != "" {
		l.of[kind+" "+device.FindString(line)] = gibibytes(text)
	}
}

func first(forms []*regexp.Regexp, line string) string {
	for _, form := range forms {
		if m := form.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return ""
}

// gibibytes returns bytes; 0 for a number that is too large.
func gibibytes(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v > 1<<20 {
		return 0
	}
	return math.Round(v * 1024 * record.MiB)
}

// count reads a number with commas; 0 if it is too large.
func count(text string) int {
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil {
		return 0
	}
	return n
}

func seconds(text string) time.Duration {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v > 1e6 {
		return 0
	}
	return time.Duration(v * float64(time.Second))
}
