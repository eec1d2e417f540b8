package modelsize

import (
	"cmp"
	"fmt"
	"math"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/hfconfig"
)

// Numbers are the sizes of a model without a file. A zero is not given.
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

// Any reports whether any size is given.
func (n Numbers) Any() bool { return n != Numbers{} }

// FromNumbers makes a model from its sizes. Without a number of parameters, it assumes a decoder with three
// feed-forward matrices.
func FromNumbers(n Numbers) (Model, error) {
	if err := n.check(); err != nil {
		return Model{}, err
	}
	m := Model{Model: hfconfig.Model{Name: "by numbers", Layers: n.Layers, Heads: n.Heads, KVHeads: n.KVHeads,
		Hidden: n.Hidden, HeadDim: n.HeadDim, Vocab: n.Vocab, Inter: n.Intermediate},
		Source: "numbers", Trust: High, CacheTrust: High}
	if m.KVHeads == 0 {
		m.KVHeads, m.CacheTrust = m.Heads, Medium
		if m.Heads > 0 {
			m.note("as many key-value heads as heads are assumed; set --num-kv-heads")
		}
	}
	if m.HeadDim == 0 && m.Heads > 0 && m.Hidden > 0 {
		if m.Hidden%m.Heads != 0 {
			return m, fault.New(fault.Usage, "give --head-dim", "--hidden-size %d is not a multiple of --num-heads %d",
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
				"the size of the weights is unknown")
		}
		m.note("the number of parameters assumes a decoder with three feed-forward matrices and an untied head")
		n.Parameters, m.Trust = float64(guess), Medium
	}
	m.Parameters = int64(n.Parameters)
	m.consist()
	return m, nil
}

// AllLayers is a weight that stands for all matrices of all layers.
const AllLayers = "layers"

// consist splits the parameters into embedding and head, which most quantisation methods leave as they are, and layers.
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
	m.Weights = append(m.Weights, hfconfig.Weight{Part: hfconfig.FeedForward, Name: AllLayers, Times: 1,
		Rows: rest / width, Cols: width, Linear: true, Split: hfconfig.Sharded, Active: 1})
	m.lump(rest % width)
}

// decoder counts the parameters of a plain decoder; 0 if a size is missing.
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

// Within refuses a flag beyond its maximum.
func Within(flag string, value, most int) error {
	if value < 0 || value > most {
		return fault.New(fault.Usage, fmt.Sprintf("use 1 to %d", most), "%s is %d", flag, value)
	}
	return nil
}

func (n Numbers) check() error {
	if p := n.Parameters; math.IsNaN(p) || p < 0 || p > 1<<50 || p > 0 && p < 1 {
		return fault.New(fault.Usage, "use a number such as 6.7e9", "--model-params is %g", p)
	}
	if err := cmp.Or(Within("--num-layers", n.Layers, 1<<14), Within("--num-heads", n.Heads, 1<<16),
		Within("--num-kv-heads", n.KVHeads, 1<<16), Within("--hidden-size", n.Hidden, 1<<24),
		Within("--head-dim", n.HeadDim, 1<<16), Within("--vocab-size", n.Vocab, 1<<26),
		Within("--intermediate-size", n.Intermediate, 1<<24)); err != nil {
		return err
	}
	if n.Heads > 0 && n.KVHeads > 0 && n.Heads%n.KVHeads != 0 {
		return fault.New(fault.Usage, "correct one of them", "--num-heads %d is not a multiple of --num-kv-heads %d",
			n.Heads, n.KVHeads)
	}
	return nil
}
