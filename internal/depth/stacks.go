package depth

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// Stacks are sampled call stacks: how often each was seen. Frames are separated by semicolons, the outermost first.
type Stacks struct {
	Every       time.Duration // between samples
	Seen        map[string]int64
	Generations int   // in which they were sampled; 0: unknown
	Samples     int64 // if they are weighed by time, their number; 0: each counts 1
}

// NewStacks returns empty stacks.
func NewStacks(every time.Duration) *Stacks { return &Stacks{Every: every, Seen: map[string]int64{}} }

// Add counts a stack, the outermost frame first.
func (s *Stacks) Add(frames []string, n int64) {
	if len(frames) > 0 {
		s.Seen[strings.Join(frames, ";")] += n
	}
}

// Total is the number of samples.
func (s *Stacks) Total() (n int64) {
	for _, seen := range s.Seen {
		n += seen
	}
	return n
}

// Leaves counts samples by their innermost frame.
func (s *Stacks) Leaves() map[string]int64 {
	out := map[string]int64{}
	for stack, n := range s.Seen {
		out[stack[strings.LastIndexByte(stack, ';')+1:]] += n
	}
	return out
}

// Rows are the stacks as rows of a phase. A sample has the role of its innermost frame that tells one, and belongs to
// the kernel of its innermost frame.
func (s *Stacks) Rows(phase string) []Row {
	var p Profile
	for stack, n := range s.Seen {
		frames := strings.Split(stack, ";")
		role := Other
		for i := len(frames) - 1; i >= 0 && role == Other; i-- {
			role = RoleOf(frames[i])
		}
		p.Add(Row{Phase: phase, Layer: NoLayer, Role: role, Kernel: frames[len(frames)-1], Calls: n,
			Self: time.Duration(n) * s.Every})
	}
	return p.Rows
}

// WriteFolded writes a line for each stack, as flamegraph.pl and speedscope read it.
func (s *Stacks) WriteFolded(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, stack := range slices.Sorted(maps.Keys(s.Seen)) {
		fmt.Fprintf(out, "%s %d\n", stack, s.Seen[stack])
	}
	return out.Flush()
}

// ReadFolded reads what WriteFolded, or another tool, wrote.
func ReadFolded(r io.Reader, every time.Duration) (*Stacks, error) {
	s := NewStacks(every)
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for line := 1; in.Scan(); line++ {
		text := strings.TrimSpace(in.Text())
		if text == "" {
			continue
		}
		at := strings.LastIndexByte(text, ' ')
		n, err := strconv.ParseInt(text[at+1:], 10, 64)
		if at < 1 || err != nil || n < 0 {
			return nil, fmt.Errorf("line %d: want frames separated by semicolons, a space and a count, got %.80q", line, text)
		}
		s.Seen[text[:at]] += n
	}
	return s, in.Err()
}

// Notes of ours in pprof's form.
const generationsNote, samplesNote = "generations: ", "samples: "

// Pprof returns the stacks in pprof's form, which also has what they were sampled in.
func (s *Stacks) Pprof() *profile.Profile {
	time := &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, time}, PeriodType: time,
		Period: s.Every.Nanoseconds(), Comments: []string{generationsNote + strconv.Itoa(s.Generations),
			samplesNote + strconv.FormatInt(s.Samples, 10)}}
	at := map[string]*profile.Location{}
	for _, stack := range slices.Sorted(maps.Keys(s.Seen)) {
		n := s.Seen[stack]
		sample := &profile.Sample{Value: []int64{n, n * s.Every.Nanoseconds()}}
		for _, frame := range slices.Backward(strings.Split(stack, ";")) {
			l := at[frame]
			if l == nil {
				id := uint64(len(at) + 1)
				f := &profile.Function{ID: id, Name: frame}
				l = &profile.Location{ID: id, Line: []profile.Line{{Function: f}}}
				p.Function, p.Location, at[frame] = append(p.Function, f), append(p.Location, l), l
			}
			sample.Location = append(sample.Location, l)
		}
		p.Sample = append(p.Sample, sample)
	}
	return p
}

// ReadPprof reads what Pprof's form was written to.
func ReadPprof(r io.Reader) (*Stacks, error) {
	p, err := profile.Parse(r)
	if err != nil {
		return nil, err
	}
	s := NewStacks(time.Duration(p.Period))
	for _, sample := range p.Sample {
		var frames []string
		for _, l := range slices.Backward(sample.Location) {
			for _, line := range slices.Backward(l.Line) {
				if line.Function != nil {
					frames = append(frames, line.Function.Name)
				}
			}
		}
		s.Add(frames, sample.Value[0])
	}
	for _, note := range p.Comments { // others have others
		if text, ok := strings.CutPrefix(note, generationsNote); ok {
			s.Generations, _ = strconv.Atoi(text)
		} else if text, ok := strings.CutPrefix(note, samplesNote); ok {
			s.Samples, _ = strconv.ParseInt(text, 10, 64)
		}
	}
	return s, nil
}

// WriteSpeedscope writes the stacks for speedscope.app.
func (s *Stacks) WriteSpeedscope(w io.Writer, name string) error {
	type frame struct {
		Name string `json:"name"`
	}
	var frames []frame
	index := map[string]int{}
	samples, weights := [][]int{}, []float64{}
	for _, stack := range slices.Sorted(maps.Keys(s.Seen)) {
		var sample []int
		for _, f := range strings.Split(stack, ";") {
			if _, ok := index[f]; !ok {
				index[f] = len(frames)
				frames = append(frames, frame{f})
			}
			sample = append(sample, index[f])
		}
		samples, weights = append(samples, sample), append(weights, float64(s.Seen[stack])*s.Every.Seconds())
	}
	var end float64
	for _, v := range weights {
		end += v
	}
	return json.NewEncoder(w).Encode(map[string]any{
		"$schema": "https://www.speedscope.app/file-format-schema.json", "name": name, "exporter": "llmparity",
		"shared": map[string]any{"frames": frames},
		"profiles": []any{map[string]any{"type": "sampled", "name": name, "unit": "seconds", "startValue": 0,
			"endValue": end, "samples": samples, "weights": weights}}})
}

// ReadPerf reads what perf script prints of one event: for each sample a heading with its time, then a line a frame,
// the innermost first. to says, by its time, to which stacks a sample is added; nil: none.
func ReadPerf(r io.Reader, to func(at time.Duration) *Stacks) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	var frames []string
	var s *Stacks
	flush := func() {
		if s != nil {
			slices.Reverse(frames)
			s.Add(frames, 1)
		}
		frames, s = nil, nil
	}
	for in.Scan() {
		line := in.Text()
		switch {
		case strings.TrimSpace(line) == "":
			flush()
		case line[0] != ' ' && line[0] != '\t':
			flush()
			if at, ok := perfTime(line); ok {
				s = to(at)
			}
		default:
			frames = append(frames, perfFrame(line))
		}
	}
	flush()
	return in.Err()
}

// perfTime is the time in a heading such as "llama-server 5307/5311 1042.118230: cpu-clock:".
func perfTime(line string) (time.Duration, bool) {
	for _, f := range strings.Fields(line) {
		text, ok := strings.CutSuffix(f, ":")
		if !ok || !strings.Contains(text, ".") {
			continue
		}
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			return time.Duration(v * 1e9), true
		}
	}
	return 0, false
}

// perfFrame is the function in a line such as "  55d0c1 ggml_vec_dot_f32+0x41 (/usr/bin/llama-server)"; where there is
// no symbol, the name of the file.
func perfFrame(line string) string {
	text := strings.TrimSpace(line)
	_, text, _ = strings.Cut(text, " ")
	name, file := text, ""
	if at := strings.LastIndex(text, " ("); at >= 0 {
		name, file = text[:at], strings.Trim(text[at+2:], "()")
	}
	if at := strings.LastIndex(name, "+0x"); at > 0 {
		name = name[:at]
	}
	if name == "[unknown]" || name == "" {
		name = "[" + strings.Trim(file[strings.LastIndexByte(file, '/')+1:], "[]") + "]"
	}
	return strings.ReplaceAll(name, ";", ":")
}
