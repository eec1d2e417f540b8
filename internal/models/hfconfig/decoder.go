package hfconfig

import (
	"cmp"
	"slices"
	"strings"
)

// decoder is a decoder-only transformer in the terms in which families differ.
type decoder struct {
	Model

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
	inter      int
	shared     int  // width of the shared experts; 0: none
	sharedGate bool // the shared experts have a gate
	expertBias bool
	routerBias bool
	dense      []bool // layers without experts
	denseInter int    // 0: the decoder's
}

// latent is attention that caches a compressed form of keys and values.
type latent struct {
	qRank, kvRank, rope, nope int
	bias                      bool // of the projections down
}

// list adds the weights and the KV cache.
func (d *decoder) list() {
	width := cmp.Or(d.project, d.Hidden)
	d.add(matrix(Embedding, "embed_tokens.weight", 1, d.Vocab, width, Sharded))
	d.add(matrix(Positions, "embed_positions.weight", 1, d.positions, d.Hidden, Replicated))
	if width != d.Hidden {
		d.add(matrix(Embedding, "project_in.weight", 1, d.Hidden, width, Replicated))
		d.add(matrix(Head, "project_out.weight", 1, width, d.Hidden, Replicated))
	}
	if d.has[embedNorm] {
		d.norm("embed_layernorm", 1)
	}
	d.attention()
	d.feedForward()
	d.norm("layernorm", int64(d.norms)*int64(d.Layers))
	if !d.noFinal {
		d.norm("norm", 1)
	}
	if !d.tied {
		d.add(matrix(Head, "lm_head.weight", 1, d.Vocab, width, Sharded))
	}
	if d.has[head] {
		d.add(vector(Head, "lm_head.bias", 1, d.Vocab, Sharded))
	}
	d.Caches = d.caches()
}

func matrix(part Part, name string, times int64, rows, cols int, split Split) Weight {
	return Weight{Part: part, Name: name, Times: times, Rows: int64(rows), Cols: int64(cols), Split: split}
}

func vector(part Part, name string, times int64, n int, split Split) Weight {
	return matrix(part, name, times, n, 1, split)
}

// norm adds norms of the hidden size.
func (d *decoder) norm(name string, times int64) {
	if d.has[bareNorms] {
		return
	}
	d.add(vector(Norms, name+".weight", times, d.Hidden, Replicated))
	if d.has[norm] {
		d.add(vector(Norms, name+".bias", times, d.Hidden, Replicated))
	}
}

// linear adds matrices and their biases.
func (d *decoder) linear(part Part, name string, times int64, rows, cols int, bias bool, split Split) {
	w := matrix(part, name+".weight", times, rows, cols, split)
	w.Linear = true
	d.add(w)
	if bias {
		if inputs := strings.HasSuffix(name, "o_proj") || strings.HasSuffix(name, "down_proj"); inputs {
			split = Replicated // inputs are divided, and the bias is added once
		}
		d.add(vector(part, name+".bias", times, rows, split))
	}
}

func (d *decoder) value() int { return cmp.Or(d.valueDim, d.HeadDim) }

func (d *decoder) attention() {
	n := int64(d.Layers)
	if d.mla != nil {
		d.latentAttention(n)
	} else {
		d.linear(Attention, "self_attn.q_proj", n, d.Heads*d.HeadDim, d.Hidden, d.has[qkv], Sharded)
		d.linear(Attention, "self_attn.k_proj", n, d.KVHeads*d.HeadDim, d.Hidden, d.has[qkv], ByKVHead)
		d.linear(Attention, "self_attn.v_proj", n, d.KVHeads*d.value(), d.Hidden, d.has[qkv], ByKVHead)
	}
	d.linear(Attention, "self_attn.o_proj", n, d.Hidden, d.Heads*d.value(), d.has[out], Sharded)
	d.add(vector(Norms, "self_attn.qk_norm.weight", n, d.qkNorm, Replicated))
	d.add(vector(Attention, "self_attn.sinks", n, d.sinks, Sharded))
}

// latentAttention has projections to a latent, which are replicated, and from it, which are divided by heads.
func (d *decoder) latentAttention(n int64) {
	l := d.mla
	if l.qRank > 0 {
		d.linear(Attention, "self_attn.q_a_proj", n, l.qRank, d.Hidden, l.bias, Replicated)
		d.add(vector(Norms, "self_attn.q_a_layernorm.weight", n, l.qRank, Replicated))
		d.linear(Attention, "self_attn.q_b_proj", n, d.Heads*(l.nope+l.rope), l.qRank, false, Sharded)
	} else {
		d.linear(Attention, "self_attn.q_proj", n, d.Heads*(l.nope+l.rope), d.Hidden, false, Sharded)
	}
	d.linear(Attention, "self_attn.kv_a_proj_with_mqa", n, l.kvRank+l.rope, d.Hidden, l.bias, Replicated)
	d.add(vector(Norms, "self_attn.kv_a_layernorm.weight", n, l.kvRank, Replicated))
	d.linear(Attention, "self_attn.kv_b_proj", n, d.Heads*(l.nope+d.value()), l.kvRank, false, Sharded)
}

// mlp adds feed-forward parts. active is how many a token uses; 0: all.
func (d *decoder) mlp(part Part, name string, times, active int64, inter int, bias bool) {
	from := len(d.Weights)
	if !d.has[plainMLP] {
		d.linear(part, name+".gate_proj", times, inter, d.Hidden, bias, Sharded)
	}
	d.linear(part, name+".up_proj", times, inter, d.Hidden, bias, Sharded)
	d.linear(part, name+".down_proj", times, d.Hidden, inter, bias, Sharded)
	for i := range d.Weights[from:] {
		if active > 0 {
			d.Weights[from+i].Active = active
		}
	}
}

func (d *decoder) feedForward() {
	dense, inter := int64(d.Layers), d.Inter
	if e := d.moe; e != nil {
		dense = 0
		for _, is := range e.dense {
			if is {
				dense++
			}
		}
		sparse := int64(d.Layers) - dense
		d.mlp(Experts, "mlp.experts.*", sparse*int64(d.Experts), sparse*int64(d.ActiveExperts), e.inter, e.expertBias)
		d.mlp(FeedForward, "mlp.shared_expert", sparse, 0, e.shared, false)
		d.add(matrix(Router, "mlp.gate.weight", sparse, d.Experts, d.Hidden, Replicated))
		if e.sharedGate {
			d.add(vector(Router, "mlp.shared_expert_gate.weight", sparse, d.Hidden, Replicated))
		}
		if e.routerBias {
			d.add(vector(Router, "mlp.gate.bias", sparse, d.Experts, Replicated))
		}
		inter = cmp.Or(e.denseInter, inter)
	}
	d.mlp(FeedForward, "mlp", dense, 0, inter, d.has[mlp])
}

// caches groups the layers by window.
func (d *decoder) caches() []Cache {
	one := Cache{Layers: d.Layers, Values: int64(d.KVHeads) * int64(d.HeadDim+d.value()),
		Keys: int64(d.KVHeads) * int64(d.HeadDim), Heads: d.KVHeads}
	if l := d.mla; l != nil {
		one = Cache{Layers: d.Layers, Values: int64(l.kvRank + l.rope), Keys: int64(l.kvRank + l.rope),
			Expanded:     int64(d.Heads) * int64(l.nope+l.rope+d.value()),
			ExpandedKeys: int64(d.Heads) * int64(l.nope+l.rope)}
	}
	if len(d.windows) == 0 {
		return []Cache{one}
	}
	var groups []Cache
	for _, window := range d.windows {
		i := slices.IndexFunc(groups, func(c Cache) bool { return c.Window == window })
		if i < 0 {
			i, one.Layers, one.Window = len(groups), 0, window
			groups = append(groups, one)
		}
		groups[i].Layers++
	}
	return groups
}
