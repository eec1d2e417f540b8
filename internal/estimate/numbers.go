package estimate

import (
	"math"

	"llmparity/internal/fault"
	"llmparity/internal/hfconfig"
)

// Numbers are a model's sizes by themselves; 0 is what isn't said.
type Numbers struct {
	Parameters   float64
	Layers       int
	Heads        int
	KVHeads      int
	Hidden       int
	HeadDim      int
	Vocab        int
	Intermediate int
}

// Any tells whether something is said.
func (n Numbers) Any() bool { return n != Numbers{} }

// FromNumbers makes a model of sizes. Parameters that aren't said are those of a decoder with three matrices in its
// feed-forward part.
func FromNumbers(n Numbers) (Model, error) {
	if err := n.check(); err != nil {
		return Model{}, err
	}
	m := Model{Name: "by numbers", Source: "numbers", Layers: n.Layers, Heads: n.Heads, KVHeads: n.KVHeads,
		Hidden: n.Hidden, HeadDim: n.HeadDim,
		Vocab: n.Vocab, Inter: n.Intermediate, Trust: High, CacheTrust: High}
	if m.KVHeads == 0 {
		m.KVHeads, m.CacheTrust = m.Heads, Medium
		if m.Heads > 0 {
			m.note("key-value heads are taken to be as many as heads; --num-kv-heads says otherwise")
		}
	}
	if m.HeadDim == 0 && m.Heads > 0 && m.Hidden > 0 {
		if m.Hidden%m.Heads != 0 {
			return m, fault.New(fault.Usage, "give --head-dim", "--hidden-size %d is no multiple of --num-heads %d",
				m.Hidden, m.Heads)
		}
		m.HeadDim = m.Hidden / m.Heads
	}
	m.paged()
	guess := m.decoder()
	if n.Parameters == 0 {
		if guess == 0 {
			return m, fault.New(fault.Usage,
				"give --model-params, or all of --num-layers, --num-heads, --hidden-size, --intermediate-size and --vocab-size",
				"the weights can't be worked out")
		}
		m.note("parameters are those of a decoder with three feed-forward matrices and a head of its own")
		n.Parameters, m.Trust = float64(guess), Medium
	} else if rough := m.rough(); rough > 0 && (n.Parameters > 4*rough || n.Parameters < rough/4) {
		m.note("--model-params %.4g and the other sizes don't go together: a decoder of %d layers with a hidden size of %d has some %.2g parameters (a mixture of experts has more)",
			n.Parameters, m.Layers, m.Hidden, rough)
		m.Trust, m.CacheTrust = Low, Low
	}
	m.Parameters = int64(n.Parameters)
	m.consist()
	return m, nil
}

// allLayers is a weight that stands for all matrices of all layers.
const allLayers = "layers"

// consist parts the parameters into the embedding and the head, which most ways of quantising leave as they are, and
// the layers.
func (m *Model) consist() {
	rest := m.Parameters
	if m.Vocab > 0 && m.Hidden > 0 {
		table := int64(m.Vocab) * int64(m.Hidden)
		for _, part := range []hfconfig.Part{hfconfig.Embedding, hfconfig.Head} {
			if table <= rest/2 {
				rest -= table
				m.Weights = append(m.Weights,
					hfconfig.Weight{Part: part, Name: string(part), Times: 1, Rows: int64(m.Vocab),
						Cols: int64(m.Hidden), Split: hfconfig.Sharded, Active: 1})
			}
		}
	}
	width := int64(max(m.Hidden, 1))
	m.Weights = append(m.Weights, hfconfig.Weight{Part: hfconfig.FeedForward, Name: allLayers, Times: 1,
		Rows: rest / width, Cols: width, Linear: true, Split: hfconfig.Sharded, Active: 1})
	m.lump(rest % width)
}

// decoder counts the parameters of a plain one; 0 where a size is missing.
func (m Model) decoder() int64 {
	if m.Layers == 0 || m.Hidden == 0 || m.Heads == 0 || m.HeadDim == 0 || m.Inter == 0 || m.Vocab == 0 {
		return 0
	}
	h, q, kv := float64(m.Hidden), float64(m.Heads*m.HeadDim), float64(m.KVHeads*m.HeadDim)
	n := float64(m.Layers)*(h*(2*q+2*kv)+3*h*float64(m.Inter)+2*h) + h + 2*float64(m.Vocab)*h
	if n > 1<<50 {
		return 0
	}
	return int64(n)
}

// rough is 12 × layers × hidden²; 0 where they aren't said.
func (m Model) rough() float64 {
	return 12*float64(m.Layers)*float64(m.Hidden)*float64(m.Hidden) + 2*float64(m.Vocab)*float64(m.Hidden)*min(
		float64(m.Layers), 1)
}

// bound is a flag with the most that it can be.
type bound struct {
	name        string
	value, most int
}

func (n Numbers) check() error {
	if p := n.Parameters; math.IsNaN(p) || p < 0 || p > 1<<50 || p > 0 && p < 1 {
		return fault.New(fault.Usage, "a number as in 6.7e9 is right", "--model-params is %g", p)
	}
	for _, f := range []bound{{"--num-layers", n.Layers, 1 << 14}, {"--num-heads", n.Heads, 1 << 16},
		{"--num-kv-heads", n.KVHeads, 1 << 16},
		{"--hidden-size", n.Hidden, 1 << 24},
		{"--head-dim", n.HeadDim, 1 << 16}, {"--vocab-size", n.Vocab, 1 << 26},
		{"--intermediate-size", n.Intermediate, 1 << 24}} {
		if f.value < 0 || f.value > f.most {
			return fault.New(fault.Usage,
				"a number from 1 is right, and no model has more than some thousands of layers or heads", "%s is %d",
				f.name, f.value)
		}
	}
	if n.Heads > 0 && n.KVHeads > 0 && n.Heads%n.KVHeads != 0 {
		return fault.New(fault.Usage, "correct one of them", "--num-heads %d can't share --num-kv-heads %d evenly",
			n.Heads, n.KVHeads)
	}
	return nil
}
