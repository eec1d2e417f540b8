package resolve

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/words"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Prediction is what a cell is likely to need, before anything is prepared.
type Prediction struct {
	// Best and High are the memory of the engine's processes in RAM and on GPUs, in bytes; 0: unknown.
	Best, High int64
	Risk       record.RiskLevel
	Seconds    *float64 // from earlier runs of the engine with the model; nil: unknown
}

// prediction predicts what a cell needs. at is the index of its engine in the setup.
func (r *Resolver) prediction(ctx context.Context, s *Chosen, c *record.Cell, at int) Prediction {
	if !r.Dry {
		return Prediction{}
	}
	e := s.launch.set.engines[at]
	input, output, _ := r.longest(s.Model, c)
	key := [7]any{s.launch.set, at, s.Model.Name, s.Model.Path, s.Model.Context, input, output}
	f, _ := once(r.cache, key, func() (Prediction, error) {
		return r.predictedMemory(ctx, e, s, input, output), nil
	})
	if past := (pastKey{e.Name(), s.Model.Name}); r.history()[past] != nil {
		prompt, generated := r.tokens(c, s)
		n := Attempts(s.Plan)
		if seconds, known := r.history().of(past, Launches(s, c), n*prompt, n*generated); known {
			f.Seconds = &seconds
		}
	}
	return f
}

func (r *Resolver) predictedMemory(ctx context.Context, e Engine, s *Chosen, input, output int) (f Prediction) {
	est, held, err := r.estimated(ctx, e, s, input, output)
	switch {
	case err != nil || held.As == nil && s.Model.Format != record.Served:
		return f
	case held.As == nil: // of a server, only weights and KV cache are predicted
		for _, c := range loosened(predicted(0, est), e.Name()).Parts {
			if c.Name != estimate.KVUsed {
				f.Best, f.High = f.Best+c.Best, f.High+c.High
			}
		}
		return f
	}
	rooms, _ := once(r.cache, "rooms", func() (map[string]estimate.Room, error) {
		var gpus *gpu.Monitor
		if r.GPU {
			gpus = gpu.Open(ctx, gpu.Options{})
			defer gpus.Close()
		}
		return Rooms(ctx, est, gpus), nil
	})
	rooms = limited(ctx, e.Engine, est, rooms)
	rooms[estimate.Buffer] = est.Buffer(0, 0)
	f.Risk = est.Risk(rooms).Level
	for _, n := range est.Needs() {
		if n.Place == estimate.RAM || n.Place == estimate.VRAM {
			f.Best, f.High = f.Best+n.Best, f.High+n.High
		}
	}
	return f
}

// tokens returns the prompt tokens and generated tokens of all requests of an attempt.
func (r *Resolver) tokens(c *record.Cell, of *Chosen) (prompt, generated int) {
	requests, asked := Requests(c), r.questions(&of.Plan, c)
	var shares []float64
	all := 0.0
	for i := range asked {
		share := 1.0
		if c.Traffic != nil && i < len(c.Traffic.Mix) && c.Traffic.Mix[i].Share > 0 {
			share = c.Traffic.Mix[i].Share
		}
		shares, all = append(shares, share), all+share
	}
	for i, q := range asked {
		part := float64(requests) * shares[i] / all
		if q.in == 0 {
			q.in, _ = r.counted(of.Model, q.prompt)
		}
		prompt += int(math.Round(part * float64(q.in)))
		generated += int(math.Round(part * float64(q.out)))
	}
	return prompt, generated
}

// Requests returns how many requests a launch measures.
func Requests(c *record.Cell) int {
	if c.Traffic == nil {
		return 1
	}
	return max(c.Traffic.Requests, 1)
}

// Attempts returns the number of attempts for each cell: warm-up launches and repetitions.
func Attempts(p plan.Plan) int { return p.Warmup.Launches + p.Repetitions }

// Launches returns how often an engine is launched for a cell. A shared launch belongs to its first cell.
func Launches(s *Chosen, c *record.Cell) int {
	first := slices.IndexFunc(s.Cells, func(o record.Cell) bool { return o.Engine == c.Engine })
	switch {
	case c.Shared && s.Cells[first].ID != c.ID:
		return s.Plan.Warmup.Launches
	case c.Reused:
		return s.Plan.Warmup.Launches + 1
	}
	return Attempts(s.Plan)
}

// history has the durations of earlier launches by engine and model. It does not know how busy the machine was.
type history map[pastKey]*past

type pastKey struct{ engine, model string } // names in records

// past is the successful launches.
type past struct {
	around   []float64 // seconds of a launch outside the measure phase
	perToken []float64 // seconds for a generated token
	shares   []float64 // time of a prompt token relative to a generated one, of requests with both
	// perScored is seconds for a token of a window of a text that was scored.
	perScored []float64
}

// mostRuns limits how many earlier runs are read, the newest first.
const mostRuns = 12

// pastRuns reads the runs in a results folder. It ignores what it can't read.
func pastRuns(out string) history {
	h := history{}
	entries, _ := os.ReadDir(out) // no folder: no history
	type aged struct {
		dir string
		at  time.Time
	}
	var found []aged
	for _, e := range entries {
		dir := filepath.Join(out, e.Name())
		if info, err := os.Stat(filepath.Join(dir, "journal.jsonl")); err == nil && e.IsDir() {
			found = append(found, aged{dir, info.ModTime()})
		}
	}
	slices.SortFunc(found, func(a, b aged) int { return b.at.Compare(a.at) })
	for _, f := range found[:min(len(found), mostRuns)] {
		s, err := record.Scan(f.dir)
		if err != nil {
			continue
		}
		for _, c := range s.Cells {
			for _, a := range s.Commits(c.ID) {
				h.take(pastKey{c.Engine, c.Model.Name}, a)
			}
		}
	}
	return h
}

// take adds an attempt if it succeeded and measured something.
func (h history) take(key pastKey, a *record.Attempt) {
	if a.Scoring != nil {
		h.takeScoring(key, a)
		return
	}
	span, ok := a.Phase(record.Measure)
	if !ok || a.Status != record.OK {
		return
	}
	seconds, prompt, generated, gaps := span.Duration().Seconds(), 0, 0, 0
	var first, others float64 // nanoseconds until the first token, and from it to the last
	for _, q := range a.Measured() {
		generated += len(q.Tokens)
		prompt += max(q.Prompted()-max(q.CachedTokens, 0), 0)
		if n := len(q.Tokens); n > 0 {
			gaps += n - 1
			first += float64(q.Tokens[0].NS - q.SentNS)
			others += float64(q.Tokens[n-1].NS - q.Tokens[0].NS)
		}
	}
	if generated == 0 || seconds <= 0 {
		return
	}
	p, share := h.at(key), promptShare
	if one := others / float64(gaps); prompt > 0 && one > 0 {
		share = min(max(first/float64(prompt)/one, leastShare), 1)
		p.shares = append(p.shares, share)
	}
	p.perToken = append(p.perToken, seconds/equivalent(share, prompt, generated))
	if a.OpenedBy == 0 {
		p.around = append(p.around, max(float64(a.EndNS-a.BeginNS)/1e9-seconds, 0))
	}
}

// at is what is known of an engine with a model; empty at first.
func (h history) at(key pastKey) *past {
	if h[key] == nil {
		h[key] = &past{}
	}
	return h[key]
}

// of predicts the duration of attempts with the given launches, prompt tokens and generated tokens in total.
func (h history) of(key pastKey, launches, prompt, generated int) (seconds float64, known bool) {
	p := h[key]
	if p == nil || len(p.around) == 0 {
		return 0, false
	}
	share := promptShare
	if len(p.shares) > 0 {
		share = stats.Median(p.shares)
	}
	return float64(launches)*stats.Median(p.around) +
		equivalent(share, prompt, generated)*stats.Median(p.perToken), true
}

// promptShare is the share where no request tells. On CPUs it was 1/20 to 1: a real model in WebLLM on SwiftShader
// takes as long for a prompt token as for a generated one.
const promptShare, leastShare = 1.0 / 8, 1.0 / 20

// equivalent returns how many generated tokens take as long as these tokens.
func equivalent(share float64, prompt, generated int) float64 {
	return share*float64(prompt) + float64(generated)
}

// Seconds with SwiftShader on two cores, to load a model of 134.5 million parameters and for each token of prompt and
// output. The highest were measured beside 29 other busy processes: 174 s and 1.6 s; 1.8 s in float32. An idle machine
// should be several times as fast, which was not measured.
const (
	ofParameters       = 134.5e6
	leastLoad, aLoad   = 10, 180.0
	leastToken, aToken = 0.25, 2.5
)

// noteworthy is the time from which a launch is announced.
const noteworthy = time.Minute

// slow says how long a launch takes with WebGPU on the CPU, if that is long: by earlier launches, else by the model's
// size. It does so once for an engine and a model, and for the longest request of the setup.
func (r *Resolver) slow(s *Chosen, at int) string {
	e := s.launch.set.engines[at]
	m := e.form(s.Model)
	if held := e.Kind.Loaded(e.Engine, m); held.As == nil || held.As.Adapter == nil || held.OnGPU {
		return ""
	}
	past := pastKey{e.Name(), s.Model.Name}
	text, _ := once(r.cache, [2]any{"slow", past}, func() (string, error) {
		tokens, known, took := 0, false, 0.0
		for i := range s.Cells {
			c := &s.Cells[i]
			prompt, generated := r.tokens(c, s)
			seconds, ok := r.history().of(past, 1, prompt, generated)
			took, known = max(took, seconds), ok
			warm := prompt/Requests(c) + s.Plan.Warmup.Tokens
			tokens = max(tokens, prompt+generated+warm)
		}
		limit := time.Duration(s.Plan.Timeout)
		say := func(high float64, text string) string {
			most := time.Duration(high * float64(time.Second))
			if most < noteworthy {
				return ""
			}
			if most > limit {
				text += fmt.Sprintf("; the time limit is %s: use --timeout %s", words.Timeout(limit), words.Timeout(most))
			}
			return text
		}
		if known {
			return say(1.5*took, fmt.Sprintf("%s: a launch takes about %s, judging by earlier runs", e.Name(),
				time.Duration(took)*time.Second)), nil
		}
		size := float64(m.Parameters) / ofParameters
		high := size * (aLoad + aToken*float64(tokens))
		return say(high, fmt.Sprintf("%s: WebGPU runs on the CPU. With %s of weights and %d tokens, warm-up included, "+
			"a launch takes roughly %.1f to %.0f min (predicted)", e.Name(), words.Size(m.WeightsB), tokens,
			size*(leastLoad+leastToken*float64(tokens))/60, high/60)), nil
	})
	return text
}

// history returns the durations of earlier launches, read once.
func (r *Resolver) history() history {
	h, _ := once(r.cache, "history", func() (history, error) { return pastRuns(r.Results), nil })
	return h
}
