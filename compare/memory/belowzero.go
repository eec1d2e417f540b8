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

// cause is what may have made a remainder negative, and by how much at most.
type cause struct {
	mib   float64
	words string
}

// belowZero explains a remainder below zero as far as the record tells: parts are sizes of what was asked for, the
// whole is what was touched.
func (c *Cell) belowZero(f Component, p *Parts) string {
	words := fmt.Sprintf("everything else is negative (%s MiB): the parts are sizes that were asked for, and together are larger than the growth of %s",
		explain.Short(f.Center()), p.Of)
	likely, explained := c.untouchedWords(-f.Center())
	switch {
	case likely == "":
		return words + "; the record tells no cause"
	case explained < -f.Center():
		return fmt.Sprintf("%s; likely, though they explain %s MiB of it alone: %s", words, explain.Short(explained), likely)
	}
	return words + "; most likely " + likely
}

// untouchedWords say what of a cell's parts may never have come into the whole, the likeliest first, until so much is
// explained; and how much they explain. Empty where the record tells nothing.
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

// causes lists what of the parts may never have come into the whole, the most first.
func (c *Cell) causes(all []evidence.Launch, p *Parts) []cause {
	var out []cause
	add := func(mib float64, format string, args ...any) {
		if mib > 0.01 {
			out = append(out, cause{mib, fmt.Sprintf(format, args...)})
		}
	}
	mapped, repacked := loggedWeights(all)
	add(min(mapped, repacked), "weights count twice: %s MiB were repacked into a buffer of their own, and the file's pages of them were not needed any more",
		explain.Short(repacked))
	add(c.others, "%s", c.OthersWords())
	// llama.cpp and its kin, whose logs are read, write zeros into the whole cache when they make it.
	reserved, used := p.Component(figure.KVCache), p.Component(figure.KVCacheUsed)
	if reserved.Known() && used.Known() && reserved.Method != evidence.EngineLog && p.Of != onGPUs {
		add(reserved.Center()-used.Center(),
			"%s MiB of the KV cache are reserved and hold no token, so that nobody touched them",
			explain.Short(reserved.Center()-used.Center()))
	}
	if working := p.Component(figure.Activations); working.Known() {
		words, partly := c.chunkWords()
		if partly {
			add(working.Center(), "workspaces are made for %s a part of their %s MiB", words, explain.Short(working.Center()))
		}
	}
	slices.SortStableFunc(out, func(a, b cause) int { return cmp.Compare(b.mib, a.mib) })
	if weights := p.Component(figure.ModelWeights); c.Says("mmap") == "on" && repacked == 0 && weights.Known() {
		add(weights.Center(), "the weights are a mapped file: what of its %s MiB was not used, or is shared with other programs, is not in PSS",
			explain.Short(weights.Center()))
	}
	return out
}

// chunkWords say for how many tokens workspaces are made, and how many the prompt had; false where it had as many.
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
		return fmt.Sprintf("%d tokens at a time, and the prompt's %s touch", n, prompt.Count()), true
	}
	return "the most tokens that can be computed at a time, and a prompt of fewer touches", true
}

// loggedWeights are the buffers of weights, in MiB, by what a log calls them: the mapped file's, and those of weights
// that were repacked.
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
