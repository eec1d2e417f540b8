// Package timing computes the times and rates of a cell's requests, alone and together, as figures over launches and as
// distributions. It also has what engines and servers report about themselves.
//
// It has recorded times only. If tokens come in groups, or prompts from a cache that does not report its hits, figures
// are absent and say why.
package timing

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

const ms = 1e6 // nanoseconds

// stored is the size of the browser's store after the load.
func stored(a *record.Attempt) float64 {
	for _, e := range a.Events {
		if e.Store != nil && e.Store.Disk >= 0 {
			return float64(e.Store.Disk) / (1 << 20)
		}
	}
	return math.NaN()
}

// Figures are a cell's load time and the figures of its requests, in the order of the table.
func Figures(spec record.Cell, attempts []*record.Attempt) []evidence.Figure {
	load := evidence.New(figure.LoadTime)
	if spec.PerGeneration {
		load.How = "the time from the start of a process that generates one token until it begins to generate; every request loads " +
			"the model again, which counts as time to first token"
	}
	out := []evidence.Figure{load.Over(attempts, func(a *record.Attempt) float64 { return loadTook(spec, a) })}
	out = append(out, evidence.New(figure.StoreBytes).Over(attempts, stored))
	for _, row := range figure.Rows(func(r *figure.Row) bool { return r.Request != nil }) {
		f, of := evidence.New(row.Name), row.Request
		if f.Unit == "tokens" {
			f.Method = evidence.ByTokens
		}
		switch row.Name {
		case figure.TTFT, figure.Latency:
			if spec.Traffic != nil {
				f.How = strings.Replace(f.How, figure.LeftHost, "was due, even if it was sent later", 1)
			}
		case figure.DecodeTPS:
			if spec.Pieces {
				f.How = "tokens after the first piece of text / (time of the last piece - time of the first piece); the engine counts tokens, " +
					"evenly divided among pieces if the engine does not count the tokens of each piece"
			}
			f.Absent = cmp.Or(clumped(attempts), f.Absent)
		case figure.ITL50, figure.ITL99:
			betweenTokens(&f, spec, attempts)
		case figure.PrefillTPS:
			f.How += " (" + spanHow(attempts) + ")"
			if unknown := UnknownPrefills(spec, attempts); len(unknown) > 0 {
				f.Absent = "not known: the prompt may have come from a cache that does not report hits"
				of = func(r *record.Request) float64 {
					if unknown[r] {
						return math.NaN()
					}
					return row.Request(r)
				}
			}
		case figure.Tokens:
			if spec.Pieces {
				f.How = "tokens as the engine counts them; it reports pieces of text"
			}
		case figure.Cached:
			if unreported(spec, attempts) {
				f.Absent = "the engine does not report this figure"
			}
			of = func(r *record.Request) float64 {
				if r.CachedTokens == record.CacheUnknown && spec.PromptCache != record.CacheOn {
					return 0
				}
				return row.Request(r)
			}
		}
		f.How += ". If a launch has several measured requests, their median is the launch's figure"
		f = f.PerRequest(attempts, of)
		if row.Name == figure.DecodeTPS {
			withoutRate(&f, attempts)
		}
		out = append(out, f)
	}
	return out
}

// loadTook is the time of a load in ms; NaN without one. If an engine starts a process for each generation, the phase
// includes reading and ending that process, which are not part of the load.
func loadTook(spec record.Cell, a *record.Attempt) float64 {
	if p, ok := a.Phase(record.Load); ok && !spec.PerGeneration {
		return float64(p.EndNS-p.BeginNS) / ms
	}
	for _, s := range a.Stages {
		if s.Name == "model" && spec.PerGeneration {
			return float64(s.EndNS-s.BeginNS) / ms
		}
	}
	return math.NaN()
}

// withoutRate warns if only some launches have a decode rate, once for each reason.
func withoutRate(f *evidence.Figure, attempts []*record.Attempt) {
	if len(f.Values) == 0 {
		return
	}
	var by evidence.Groups[string, *record.Attempt]
	for _, a := range attempts {
		if why := clumped([]*record.Attempt{a}); why != "" && math.IsNaN(f.Value(a.ID)) {
			by.Add(why, a)
		}
	}
	for why, of := range by.All() {
		f.Warnings = append(f.Warnings, explain.NoRate.With(len(of), len(attempts), why))
	}
}

// clumped says why there is no decode rate; empty if tokens came one by one, or nearly.
func clumped(attempts []*record.Attempt) string {
	for _, r := range evidence.Requests(attempts) {
		if why := figure.Untimed(r); why != "" {
			return why
		}
	}
	return ""
}

// unreported reports whether an engine with its cache on did not report the hits of every request.
func unreported(spec record.Cell, attempts []*record.Attempt) bool {
	return spec.PromptCache == record.CacheOn && slices.ContainsFunc(evidence.Requests(attempts),
		func(r *record.Request) bool { return r.CachedTokens == record.CacheUnknown })
}

// UnknownPrefills are the requests whose prompt may have come in part from a cache, because a server that llmparity did
// not start may have seen it before. A server that llmparity started has not: its warm-up uses another prompt.
func UnknownPrefills(spec record.Cell, attempts []*record.Attempt) map[*record.Request]bool {
	out := map[*record.Request]bool{}
	for _, a := range attempts {
		for n, r := range a.Measured() {
			if spec.PromptCache == record.CacheOn && r.CachedTokens == record.CacheUnknown &&
				(spec.Isolation != record.OfLaunch || a.OpenedBy != 0 || n > 0) {
				out[r] = true
			}
		}
	}
	return out
}

func spanHow(attempts []*record.Attempt) string {
	for _, r := range evidence.Requests(attempts) {
		if s, ok := r.Span(record.Prefill); ok && s.How != "" {
			return s.How
		}
	}
	return "as the engine reports it"
}

// Sampler has the cost of sampling.
func Sampler(attempts []*record.Attempt) []evidence.Figure {
	cpu, read, busy := evidence.New(figure.SamplerCPU), evidence.New(figure.SamplerUS), evidence.New(figure.SamplerBusy)
	cpu.Method, busy.Method = evidence.ByClock, evidence.ByClock
	for _, a := range attempts {
		busy.Add(a.ID, 100*readShare(a))
		read.Add(a.ID, float64(a.Cost.ReadNS)/float64(a.Cost.Reads)/1e3)
		if length := a.EndNS - a.BeginNS; length > 0 && a.Cost.SelfCPUNS > 0 {
			cpu.Add(a.ID, 100*float64(a.Cost.SelfCPUNS)/float64(length))
		}
	}
	return []evidence.Figure{busy, read, cpu}
}

// readShare is the share of one core that sampling used while the engine worked; NaN if nothing was read.
func readShare(a *record.Attempt) float64 {
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
	if reading == 0 {
		return math.NaN()
	}
	reading += readWhileGenerating(a)
	share := float64(reading) / float64(length)
	if c := a.Cost; c.ReadCPUNS > 0 && c.ReadNS > 0 { // else unknown, as on macOS
		share *= float64(c.ReadCPUNS) / float64(c.ReadNS)
	}
	return share
}

// betweenTokens describes the gaps: between pieces of text if the engine reports those.
func betweenTokens(f *evidence.Figure, spec record.Cell, attempts []*record.Attempt) {
	each := figure.BetweenTokens
	if spec.Pieces {
		each += ", tokens as the engine counts them with every chunk"
	}
	if evidence.Uncounted(spec, attempts) {
		f.Title = strings.Replace(f.Title, "inter-token latency", "between pieces", 1)
		each = "the time between two pieces of text, each of an unknown number of tokens"
	}
	f.How = strings.Replace(f.How, figure.BetweenTokens, each, 1) +
		". Tokens that arrive together share the time since the previous arrival evenly; those of the first arrival are left out"
}
