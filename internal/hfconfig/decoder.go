package hfconfig

import (
	"cmp"
	"strings"
)

// decoder is a decoder-only transformer in the terms in which families differ.
type decoder struct {
	layers, hidden, heads, kvHeads, headDim, inter, vocab int

	has       [fields]bool
	valueDim  int  // of a head's values; 0: headDim
	norms     int  // in a layer
	noFinal   bool // no norm before the head
	qkNorm    int  // weights of the norms of queries and keys, in a layer
	sinks     int  // values of attention's sinks, in a layer
	positions int  // that are learned
	project   int  // width of the embedding, if it is not the hidden size
	tied      bool
	windows   []int // of each layer; nil: none has one
	moe       *mixture
	mla       *latent
}

// mixture is a layer of experts.
type mixture struct {
	experts, perToken, inter int
	shared                   int  // width of the shared experts; 0: none
	sharedGate               bool // the shared experts have a gate
	expertBias               bool
	routerBias               bool
	dense                    []bool // layers without experts
	denseInter               int    // 0: the decoder's inter
}

// latent is attention that caches a compressed form of keys and values.
type latent struct {
	qRank, kvRank, rope, nope int
	bias                      bool // of the projections down
}

// model lists the weights.
func (d decoder) model(r *reader) Model {
	m := Model{File: r.file, Type: r.family, Layers: d.layers, Hidden: d.hidden, Heads: d.heads, KVHeads: d.kvHeads,
		HeadDim: d.headDim, Intermediate: d.inter, Vocab: d.vocab}
	width := cmp.Or(d.project, d.hidden)
	m.add(matrix(Embedding, "embed_tokens.weight", 1, d.vocab, width, Sharded))
	m.add(matrix(Positions, "embed_positions.weight", 1, d.positions, d.hidden, Replicated))
	if width != d.hidden {
		m.add(matrix(Embedding, "project_in.weight", 1, d.hidden, width, Replicated))
		m.add(matrix(Head, "project_out.weight", 1, width, d.hidden, Replicated))
	}
	if d.has[embedNorm] {
		d.norm(&m, "embed_layernorm", 1)
	}
	d.attention(&m)
	d.feedForward(&m)
	d.norm(&m, "layernorm", int64(d.norms)*int64(d.layers))
	if !d.noFinal {
		d.norm(&m, "norm", 1)
	}
	if !d.tied {
		m.add(matrix(Head, "lm_head.weight", 1, d.vocab, width, Sharded))
	}
	if d.has[head] {
		m.add(vector(Head, "lm_head.bias", 1, d.vocab, Sharded))
	}
	m.Caches = d.caches()
	if d.moe != nil {
		m.Experts, m.ActiveExperts = d.moe.experts, d.moe.perToken
	}
	return m
}

func matrix(part Part, name string, times int64, rows, cols int, split Split) Weight {
	return Weight{Part: part, Name: name, Times: times, Rows: int64(rows), Cols: int64(cols), Split: split}
}

func vector(part Part, name string, times int64, n int, split Split) Weight {
	return matrix(part, name, times, n, 1, split)
}

// norm adds norms of the hidden size.
func (d decoder) norm(m *Model, name string, times int64) {
	if d.has[bareNorms] {
		return
	}
	m.add(vector(Norms, name+".weight", times, d.hidden, Replicated))
	if d.has[norm] {
		m.add(vector(Norms, name+".bias", times, d.hidden, Replicated))
	}
}

// linear adds matrices and their biases.
func linear(m *Model, part Part, name string, times int64, rows, cols int, bias bool, split Split) {
	w := matrix(part, name+".weight", times, rows, cols, split)
	w.Linear = true
	m.add(w)
	if bias {
		if inputs := strings.HasSuffix(name, "o_proj") || strings.HasSuffix(name, "down_proj"); inputs {
			split = Replicated // inputs are divided, and the bias is added once
		}
		m.add(vector(part, name+".bias", times, rows, split))
	}
}

func (d decoder) value() int { return cmp.Or(d.valueDim, d.headDim) }

func (d decoder) attention(m *Model) {
	n := int64(d.layers)
	if d.mla != nil {
		d.latentAttention(m, n)
	} else {
		linear(m, Attention, "self_attn.q_proj", n, d.heads*d.headDim, d.hidden, d.has[qkv], Sharded)
		linear(m, Attention, "self_attn.k_proj", n, d.kvHeads*d.headDim, d.hidden, d.has[qkv], ByKVHead)
		linear(m, Attention, "self_attn.v_proj", n, d.kvHeads*d.value(), d.hidden, d.has[qkv], ByKVHead)
	}
	linear(m, Attention, "self_attn.o_proj", n, d.hidden, d.heads*d.value(), d.has[out], Sharded)
	m.add(vector(Norms, "self_attn.qk_norm.weight", n, d.qkNorm, Replicated))
	m.add(vector(Attention, "self_attn.sinks", n, d.sinks, Sharded))
}

// latentAttention has projections to a latent, which are replicated, and from it, which are divided by heads.
func (d decoder) latentAttention(m *Model, n int64) {
	l := d.mla
	if l.qRank > 0 {
		linear(m, Attention, "self_attn.q_a_proj", n, l.qRank, d.hidden, l.bias, Replicated)
		m.add(vector(Norms, "self_attn.q_a_layernorm.weight", n, l.qRank, Replicated))
		linear(m, Attention, "self_attn.q_b_proj", n, d.heads*(l.nope+l.rope), l.qRank, false, Sharded)
	} else {
		linear(m, Attention, "self_attn.q_proj", n, d.heads*(l.nope+l.rope), d.hidden, false, Sharded)
	}
	linear(m, Attention, "self_attn.kv_a_proj_with_mqa", n, l.kvRank+l.rope, d.hidden, l.bias, Replicated)
	m.add(vector(Norms, "self_attn.kv_a_layernorm.weight", n, l.kvRank, Replicated))
	linear(m, Attention, "self_attn.kv_b_proj", n, d.heads*(l.nope+d.value()), l.kvRank, false, Sharded)
}

// mlp adds feed-forward parts. active is how many a token uses; 0: all.
func (d decoder) mlp(m *Model, part Part, name string, times, active int64, inter int, bias bool) {
	from := len(m.Weights)
	if !d.has[plainMLP] {
		linear(m, part, name+".gate_proj", times, inter, d.hidden, bias, Sharded)
	}
	linear(m, part, name+".up_proj", times, inter, d.hidden, bias, Sharded)
	linear(m, part, name+".down_proj", times, d.hidden, inter, bias, Sharded)
	for i := range m.Weights[from:] {
		if active > 0 {
			m.Weights[from+i].Active = active
		}
	}
}

func (d decoder) feedForward(m *Model) {
	dense, inter := int64(d.layers), d.inter
	if e := d.moe; e != nil {
		dense = 0
		for _, is := range e.dense {
			if is {
				dense++
			}
		}
		sparse := int64(d.layers) - dense
		d.mlp(m, Experts, "mlp.experts.*", sparse*int64(e.experts), sparse*int64(e.perToken), e.inter, e.expertBias)
		d.mlp(m, FeedForward, "mlp.shared_expert", sparse, 0, e.shared, false)
		m.add(matrix(Router, "mlp.gate.weight", sparse, e.experts, d.hidden, Replicated))
		if e.sharedGate {
			m.add(vector(Router, "mlp.shared_expert_gate.weight", sparse, d.hidden, Replicated))
		}
		if e.routerBias {
			m.add(vector(Router, "mlp.gate.bias", sparse, e.experts, Replicated))
		}
		inter = cmp.Or(e.denseInter, inter)
	}
	d.mlp(m, FeedForward, "mlp", dense, 0, inter, d.has[mlp])
}

// caches groups the layers by window.
func (d decoder) caches() []Cache {
	one := Cache{Layers: d.layers, Values: int64(d.kvHeads) * int64(d.headDim+d.value()),
		Keys: int64(d.kvHeads) * int64(d.headDim), Heads: d.kvHeads}
	if l := d.mla; l != nil {
		one = Cache{Layers: d.layers, Values: int64(l.kvRank + l.rope), Keys: int64(l.kvRank + l.rope),
			Expanded:     int64(d.heads) * int64(l.nope+l.rope+d.value()),
			ExpandedKeys: int64(d.heads) * int64(l.nope+l.rope)}
	}
	if len(d.windows) == 0 {
		return []Cache{one}
	}
	var groups []Cache
	at := map[int]int{}
	for _, window := range d.windows {
		i, ok := at[window]
		if !ok {
			i, at[window] = len(groups), len(groups)
			one.Layers, one.Window = 0, window
			groups = append(groups, one)
		}
		groups[i].Layers++
	}
	return groups
}
