package compare

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/record"
)

// cause is what may have made a remainder negative, and by how much at most.
type cause struct {
	mib   float64
	words string
}

// belowZero explains a remainder below zero as far as the record tells: parts are sizes of what was asked for, the whole is what was
// touched.
func (c *Cell) belowZero(f Component, p *Parts) string {
	words := fmt.Sprintf("framework overhead is negative (%s MiB): the parts are sizes that were asked for, and together are larger than the growth of %s",
		short(f.Center()), p.Of)
	likely, explained := c.untouchedWords(-f.Center())
	switch {
	case likely == "":
		return words + "; the record tells no cause"
	case explained < -f.Center():
		return fmt.Sprintf("%s; likely, though they explain %s MiB of it alone: %s", words, short(explained), likely)
	}
	return words + "; most likely " + likely
}

// untouchedWords say what of a cell's parts may never have come into the whole, the likeliest first, until so much is explained; and how
// much they explain. Empty where the record tells nothing.
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

// causes lists what of the parts may never have come into the whole.
func (c *Cell) causes(all []launch, p *Parts) []cause {
	var out []cause
	add := func(mib float64, format string, args ...any) {
		if mib > 0.01 {
			out = append(out, cause{mib, fmt.Sprintf(format, args...)})
		}
	}
	weights, mapped := p.Component(ModelWeights), 0.0
	repacked, ofLog := 0.0, map[string]float64{}
	for _, l := range all {
		for _, a := range l.at(record.Load) {
			for _, m := range a.Metrics {
				if strings.HasPrefix(m.Name, "weights.") {
					ofLog[m.Name] = m.Value / record.MiB
				}
			}
		}
	}
	for name, mib := range ofLog {
		if strings.Contains(name, "_Mapped") {
			mapped += mib
		}
		if strings.Contains(strings.ToUpper(name), "REPACK") {
			repacked += mib
		}
	}
	if repacked > 0 && mapped > 0 {
		add(min(repacked, mapped), "weights count twice: %s MiB were repacked into a buffer of their own, and the file's pages of them were not needed any more",
			short(repacked))
	}
	if c.others > 0 {
		add(c.others, "%s", c.othersWords())
	}
	// llama.cpp and its kin, whose logs are read, write zeros into the whole cache when they make it.
	reserved, used := p.Component(KVCache), p.Component(KVCacheUsed)
	if reserved.Known() && used.Known() && reserved.Method != EngineLog && p.Of != onGPUs {
		add(reserved.Center()-used.Center(), "%s MiB of the KV cache are reserved and hold no token, so that nobody touched them",
			short(reserved.Center()-used.Center()))
	}
	if working := p.Component(Activations); working.Known() {
		chunk := c.says("ubatch")
		if chunk == "" {
			chunk = c.says("prefill_chunk")
		}
		room := "the most that can be computed at a time"
		if chunk != "" {
			room = chunk + " tokens at a time"
		}
		add(working.Center(), "workspaces are made for %s, and a short prompt touches a part of their %s MiB", room, short(working.Center()))
	}
	slices.SortStableFunc(out, func(a, b cause) int { return compareDown(a.mib, b.mib) })
	if c.says("mmap") == "on" && repacked == 0 && weights.Known() {
		out = append(out, cause{weights.Center(), fmt.Sprintf("the weights are a mapped file: what of its %s MiB was not used, or is shared with other programs, "+
			"is not in PSS", short(weights.Center()))})
	}
	return out
}

func compareDown(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}
