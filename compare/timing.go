package compare

import (
	"fmt"
	"math"
	"slices"

	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

const ms = 1e6 // nanoseconds

// timingFigures come in the order in which renderers show them.
func timingFigures(spec record.Cell, attempts []*record.Attempt) []Figure {
	load := Figure{Name: figure.LoadTime, Title: "load time", Unit: "ms", Absent: "no load phase ended",
		How: "the length of the load phase on the host's clock: from asking for the model until the engine says that it is " +
			"ready; " +
			"starting the engine itself is in it where the engine starts with the model"}
	if spec.PerGeneration {
		load.How = "the length of the span “model”: a process that generates one token, started until it says that it begins to " +
			"generate; every generation loads the model again, within its time to the first token"
	}
	for _, a := range attempts {
		if took, ok := loadTook(spec, a); ok {
			load.add(a.ID, float64(took)/ms)
		}
	}
	const inLaunch = "; the median of a launch's requests in the measure phase"
	decodeHow, counted := "(N - 1) / (time of the last token - time of the first), N real tokens and not text chunks",
		"real tokens, counted where the engine samples them"
	if spec.Pieces {
		decodeHow = "tokens behind the first piece of text / (time of the last piece - time of the first), tokens as the engine counts " +
			"them, where it does not count those of each piece all pieces taken for alike"
		counted = "tokens as the engine counts them; it tells of pieces of text"
	}
	prefill := Figure{Name: figure.PrefillTPS, Title: "prefill", Unit: "tokens/s",
		Absent: "no prefill span, or no number of prompt tokens, in the record",
		How:    "prompt tokens that came from no cache / the prefill span (" + spanHow(attempts) + ")" + inLaunch}
	cached := Figure{Name: figure.Cached, Title: "prompt tokens from a cache", Unit: "tokens", Method: byTokens,
		Absent: "no request returned",
		How: "tokens of the prompt that the engine did not compute, because an earlier request had: prefill is of the " +
			"others" + inLaunch}
	if untold(spec, attempts) {
		cached.Absent = "the engine does not tell"
	}
	unknown := unknownPrefills(spec, attempts)
	if len(unknown) > 0 {
		prefill.Absent = "not known: the prompt may have been in a cache that does not tell"
	}
	decode := Figure{Name: figure.DecodeTPS, Title: "decode", Unit: "tokens/s", Absent: "no request yielded two tokens",
		How: decodeHow + inLaunch}
	if why := clumped(attempts); why != "" {
		decode.Absent = why
	}
	left := "left the host"
	if spec.Traffic != nil {
		left = "was due, whether or not it was sent then"
	}
	figures := []Figure{
		load,
		perRequest(attempts, ttft, Figure{Name: figure.TTFT, Title: "time to first token", Unit: "ms",
			Absent: "no request yielded a token",
			How:    "the first real token's time minus the time at which the request " + left + inLaunch}),
		perRequest(attempts, decodeTPS, decode),
		perRequest(attempts, func(r *record.Request) float64 {
			if unknown[r] {
				return math.NaN()
			}
			return prefillTPS(r)
		}, prefill),
		perRequest(attempts, latency, Figure{Name: figure.Latency, Title: "request latency", Unit: "ms",
			Absent: "no request returned",
			How:    "from the time at which the request " + left + " until it has returned" + inLaunch}),
		perRequest(attempts, tokens, Figure{Name: figure.Tokens, Title: "tokens generated", Unit: "tokens", Method: byTokens,
			Absent: "no request returned",
			How:    counted + inLaunch}),
		perRequest(attempts, promptTokens,
			Figure{Name: figure.Prompt, Title: "prompt tokens", Unit: "tokens", Method: byTokens,
				Absent: "the engine tells neither ids nor a number",
				How:    "tokens that the engine made of the prompt" + inLaunch}),
		perRequest(attempts, func(r *record.Request) float64 { return cachedTokens(spec, r) }, cached),
	}
	decodeAt := slices.IndexFunc(figures, func(f Figure) bool { return f.Name == figure.DecodeTPS })
	return slices.Insert(figures, decodeAt+1, gapFigures(spec, attempts, inLaunch)...)
}

// perRequest takes the median within the launch: the launch is the unit of repetition, requests inside one are not
// independent.
func perRequest(attempts []*record.Attempt, of func(*record.Request) float64, f Figure) Figure {
	for _, a := range attempts {
		var values []float64
		for _, r := range a.Measured() {
			if v := of(r); !math.IsNaN(v) && !math.IsInf(v, 0) {
				values = append(values, v)
			}
		}
		f.add(a.ID, stats.Median(values))
	}
	return f
}

func ttft(r *record.Request) float64 {
	if len(r.Tokens) == 0 {
		return math.NaN()
	}
	return float64(r.Tokens[0].NS-due(r)) / ms
}

func decodeTPS(r *record.Request) float64 {
	last := len(r.Tokens) - 1
	// there is none where tokens came at once: their times are not those at which they were there
	_, told := r.Span(record.Decode)
	if last < 1 || r.Tokens[last].NS <= r.Tokens[0].NS || sparse(r) || !told {
		return math.NaN()
	}
	behind := float64(r.Tokened()) * float64(len(r.Tokens)-together(r)) / float64(len(r.Tokens))
	return behind / (float64(r.Tokens[last].NS-r.Tokens[0].NS) / 1e9)
}

// together is how many tokens came with the first one, itself among them: those of one piece of text, where the engine
// counts them, have one time, and took no time that could be seen.
func together(r *record.Request) int {
	n := 0
	for n < len(r.Tokens) && r.Tokens[n].NS == r.Tokens[0].NS {
		n++
	}
	return n
}

func prefillTPS(r *record.Request) float64 {
	s, ok := r.Span(record.Prefill)
	n := r.Prompted() - max(0, r.CachedTokens)
	if !ok || s.EndNS <= s.BeginNS || n < 1 {
		return math.NaN()
	}
	return float64(n) / (float64(s.EndNS-s.BeginNS) / 1e9)
}

func latency(r *record.Request) float64 { return float64(r.ReturnedNS-due(r)) / ms }

func tokens(r *record.Request) float64 { return float64(r.Tokened()) }

// loadTook is how many nanoseconds a load took. Of an engine with a process a generation the phase goes on until its
// process has been read and ended; that is ours.
func loadTook(spec record.Cell, a *record.Attempt) (int64, bool) {
	if spec.PerGeneration {
		for _, s := range a.Stages {
			if s.Name == "model" {
				return s.EndNS - s.BeginNS, true
			}
		}
		return 0, false
	}
	p, ok := a.Phase(record.Load)
	return p.EndNS - p.BeginNS, ok
}

// wholePieces is how many pieces of text a token must have come in, at least, for the times of the first and the last
// piece to be those of the first and the last token, nearly.
const wholePieces = 0.9

// sparse tells that many of the tokens came in one piece with others: when they did is not known.
func sparse(r *record.Request) bool { return float64(len(r.Tokens)) < wholePieces*float64(r.Generated) }

// clumped says why there is no decode; empty where tokens came one by one, or nearly.
func clumped(attempts []*record.Attempt) string {
	for _, a := range attempts {
		for _, r := range a.Measured() {
			if sparse(r) {
				return fmt.Sprintf("%d tokens came in %d pieces: when each came is not known", r.Generated,
					len(r.Tokens))
			}
			if _, told := r.Span(record.Decode); !told && len(r.Tokens) > 1 {
				return fmt.Sprintf("the %d tokens came at once: when each was there is not known", len(r.Tokens))
			}
		}
	}
	return ""
}

func cachedTokens(spec record.Cell, r *record.Request) float64 {
	switch {
	case r.CachedTokens != record.CacheUntold:
		return float64(r.CachedTokens)
	case spec.PromptCache == record.CacheOn:
		return math.NaN()
	}
	return 0
}

// untold tells whether an engine whose cache is on did not say of every request what came from it.
func untold(spec record.Cell, attempts []*record.Attempt) bool {
	for _, a := range attempts {
		for _, r := range a.Measured() {
			if spec.PromptCache == record.CacheOn && r.CachedTokens == record.CacheUntold {
				return true
			}
		}
	}
	return false
}

// unknownPrefills are the requests whose prompt may have come from a cache, nobody tells how much of it: that server
// may have been asked for it before. One of our own has not been when it is asked first: it was warmed up with another
// prompt.
func unknownPrefills(spec record.Cell, attempts []*record.Attempt) map[*record.Request]bool {
	out := map[*record.Request]bool{}
	for _, a := range attempts {
		for n, r := range a.Measured() {
			if spec.PromptCache == record.CacheOn && r.CachedTokens == record.CacheUntold &&
				(spec.Isolation != record.OfLaunch || a.OpenedBy != 0 || n > 0) {
				out[r] = true
			}
		}
	}
	return out
}

func promptTokens(r *record.Request) float64 {
	if r.Prompted() == 0 {
		return math.NaN()
	}
	return float64(r.Prompted())
}

func spanHow(attempts []*record.Attempt) string {
	for _, a := range attempts {
		for _, r := range a.Measured() {
			if s, ok := r.Span(record.Prefill); ok && s.How != "" {
				return s.How
			}
		}
	}
	return "as the engine reports it"
}

// samplerFigures are what measuring itself took.
func samplerFigures(attempts []*record.Attempt) []Figure {
	cpu := Figure{Name: figure.SamplerCPU, Title: "our CPU share", Unit: "%", Method: byClock, Absent: "not recorded",
		How: "CPU time of the whole of llmparity / the launch's length: 100 % is one core; the browser's own share of " +
			"driving it is not in it"}
	read := Figure{Name: figure.SamplerUS, Title: "a read", Unit: "µs", Absent: "nothing was read",
		How: "time spent inside reads / number of reads, over all methods"}
	busy := Figure{Name: figure.SamplerBusy, Title: "reading while it works", Unit: "%", Method: byClock,
		Absent: "nothing was read",
		How: "time spent inside reads during load, warm-up and measurement / their length: 100 % is one core; reads at " +
			"phase edges lie outside"}
	for _, a := range attempts {
		if share, ok := readShare(a); ok {
			busy.add(a.ID, 100*share)
		}
		if length := a.EndNS - a.BeginNS; length > 0 && a.Cost.SelfCPUNS > 0 {
			cpu.add(a.ID, 100*float64(a.Cost.SelfCPUNS)/float64(length))
		}
		if a.Cost.Reads > 0 {
			read.add(a.ID, float64(a.Cost.ReadNS)/float64(a.Cost.Reads)/1e3)
		}
	}
	return []Figure{busy, read, cpu}
}

// readShare is the share of one core that reading took while the engine had something to do.
func readShare(a *record.Attempt) (float64, bool) {
	var length, reading int64
	for _, p := range []record.Phase{record.Load, record.Warmup, record.Measure} {
		span, ok := a.Phase(p)
		if !ok {
			continue
		}
		length += span.EndNS - span.BeginNS
		for _, s := range a.Samples {
			if s.NS >= span.BeginNS && s.NS <= span.EndNS {
				reading += s.ReadNS
			}
		}
	}
	return float64(reading) / float64(length), length > 0 && reading > 0
}
