package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// cause is why a remainder may be negative, and by how much at most.
type cause struct {
	mib   float64
	words string
}

// belowZero explains a negative remainder: parts are requested sizes, the whole is what was touched.
func (c *Cell) belowZero(f Component, p *Parts) string {
	words := fmt.Sprintf("everything else is negative (%s MiB): the parts are requested sizes, and their sum exceeds the growth of %s",
		explain.Short(f.Center()), p.Of)
	likely, explained := c.untouchedWords(-f.Center())
	switch {
	case likely == "":
		return words + "; the record shows no cause"
	case explained < -f.Center():
		return fmt.Sprintf("%s; likely causes, which explain only %s MiB: %s", words, explain.Short(explained), likely)
	}
	return words + "; most likely cause: " + likely
}

// untouchedWords lists causes, the likeliest first, until they explain what is missing, and how much they explain.
func (c *Cell) untouchedWords(missing float64) (words string, explained float64) {
	var likely []string
	for _, why := range c.untouched {
		if explained >= missing {
			break
		}
		explained += why.mib
		likely = append(likely, why.words)
	}
	return strings.Join(likely, "; "), explained
}

// causes lists memory that was requested and may never have been touched, the largest first.
func (c *Cell) causes(all []evidence.Launch, p *Parts) []cause {
	var out []cause
	add := func(mib float64, format string, args ...any) {
		if mib > 0.01 {
			out = append(out, cause{mib, fmt.Sprintf(format, args...)})
		}
	}
	mapped, repacked := loggedWeights(all)
	add(min(mapped, repacked), "weights count twice: %s MiB were repacked into a separate buffer, and the pages of the file were released",
		explain.Short(repacked))
	add(c.others, "%s", c.OthersWords())
	// llama.cpp and engines built on it fill the whole cache with zeros when they allocate it.
	reserved, used := p.Component(figure.KVCache), p.Component(figure.KVCacheUsed)
	if reserved.Known() && used.Known() && reserved.Method != evidence.EngineLog && p.Of != onGPUs {
		add(reserved.Center()-used.Center(),
			"%s MiB of the KV cache are reserved but hold no tokens yet",
			explain.Short(reserved.Center()-used.Center()))
	}
	if working := p.Component(figure.Activations); working.Known() {
		words, partly := c.chunkWords()
		if partly {
			add(working.Center(), "workspaces are sized for %s; only a part of their %s MiB was used", words, explain.Short(working.Center()))
		}
	}
	slices.SortStableFunc(out, func(a, b cause) int { return cmp.Compare(b.mib, a.mib) })
	if weights := p.Component(figure.ModelWeights); c.Says("mmap") == "on" && repacked == 0 && weights.Known() {
		add(weights.Center(), "weights are a mapped file: PSS leaves out the part of its %s MiB that was not used or is shared with other programs",
			explain.Short(weights.Center()))
	}
	return out
}

// chunkWords says for how many tokens workspaces are sized; false if the prompt had as many.
func (c *Cell) chunkWords() (words string, partly bool) {
	prompt := c.Figure(figure.Prompt)
	chunk := c.Says("ubatch")
	if chunk == "" {
		chunk = c.Says("prefill_chunk")
	}
	n, err := strconv.Atoi(chunk)
	switch {
	case err == nil && prompt.Known() && prompt.Center() >= float64(n):
		return "", false
	case err == nil && prompt.Known():
		return fmt.Sprintf("%d tokens at a time and the prompt has %s", n, prompt.Count()), true
	}
	return "the largest batch of tokens", true
}

// loggedWeights sums the buffers of weights in an engine's log, in MiB: the mapped file, and repacked weights.
func loggedWeights(all []evidence.Launch) (mapped, repacked float64) {
	latest := map[string]float64{}
	for _, l := range all {
		for _, a := range l.At(record.Load) {
			for _, m := range a.Metrics {
				if strings.HasPrefix(m.Name, "weights.") {
					latest[m.Name] = m.Value
				}
			}
		}
	}
	for name, bytes := range latest {
		switch name = strings.ToUpper(name); {
		case strings.Contains(name, "_MAPPED"):
			mapped += bytes
		case strings.Contains(name, "REPACK"):
			repacked += bytes
		}
	}
	return mapped / record.MiB, repacked / record.MiB
}
