package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/models/gguf"
	"llmparity/internal/record"
)

// strange makes random models of architectures that llmparity knows only by name.
type strange struct {
	metadata []gguf.Entry
	weights  []gguf.Weights
	random   *rand.Rand
}

const strangeHidden, strangeHeads, strangeLayers, strangeContext = 64, 4, 2, 256

// newStrange has the tiny model's vocabulary.
func newStrange(t *testing.T, architecture string, sizes map[string]any) *strange {
	t.Helper()
	f, err := gguf.Open(tinyOf(t).Path)
	check(t, err)
	defer f.Close()
	m := &strange{random: rand.New(rand.NewPCG(1, 2)), metadata: []gguf.Entry{
		{Key: "general.architecture", Value: architecture}, {Key: "general.name", Value: "my " + architecture}}}
	for _, e := range f.Metadata {
		if strings.HasPrefix(e.Key, "tokenizer.") {
			m.metadata = append(m.metadata, e)
		}
	}
	for key, n := range map[string]int{"context_length": strangeContext, "embedding_length": strangeHidden,
		"block_count": strangeLayers, "feed_forward_length": 2 * strangeHidden, "attention.head_count": strangeHeads} {
		m.metadata = append(m.metadata, gguf.Entry{Key: architecture + "." + key, Value: uint32(n)})
	}
	for key, value := range sizes {
		m.metadata = append(m.metadata, gguf.Entry{Key: architecture + "." + key, Value: value})
	}
	tokens, err := f.Texts("tokenizer.ggml.tokens")
	check(t, err)
	m.add("token_embd.weight", strangeHidden, len(tokens))
	m.add("output.weight", strangeHidden, len(tokens))
	return m
}

func (m *strange) add(name string, shape ...int) {
	n, dims := 1, []uint64{}
	for _, d := range shape {
		n, dims = n*d, append(dims, uint64(d))
	}
	values := make([]float32, n)
	for i := range values {
		if values[i] = 0.3 * float32(m.random.NormFloat64()); strings.Contains(name, "norm.weight") {
			values[i] = 1
		}
	}
	m.weights = append(m.weights, gguf.Weights{Name: name, Shape: dims, Values: values})
}

// both adds a weight with its bias.
func (m *strange) both(name string, in, out int) {
	if in > 0 {
		m.add(name+".weight", in, out)
	} else {
		m.add(name+".weight", out)
	}
	m.add(name+".bias", out)
}

// phi2 has layer norms, biases, and attention beside the feed-forward part.
func phi2(t *testing.T) *strange {
	m := newStrange(t, "phi2", map[string]any{"attention.layer_norm_epsilon": float32(1e-5),
		"rope.dimension_count": uint32(8)})
	m.add("output.bias", int(m.weights[1].Shape[1]))
	m.both("output_norm", 0, strangeHidden)
	for i := range strangeLayers {
		at := fmt.Sprintf("blk.%d.", i)
		m.both(at+"attn_norm", 0, strangeHidden)
		m.both(at+"attn_qkv", strangeHidden, 3*strangeHidden)
		m.both(at+"attn_output", strangeHidden, strangeHidden)
		m.both(at+"ffn_up", strangeHidden, 2*strangeHidden)
		m.both(at+"ffn_down", 2*strangeHidden, strangeHidden)
	}
	return m
}

// experts is a Llama with four experts, of which a token uses two.
func experts(t *testing.T) *strange {
	m := newStrange(t, "llama", map[string]any{"attention.layer_norm_rms_epsilon": float32(1e-5),
		"expert_count": uint32(4), "expert_used_count": uint32(2)})
	m.add("output_norm.weight", strangeHidden)
	for i := range strangeLayers {
		at := fmt.Sprintf("blk.%d.", i)
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			m.add(at+name+".weight", strangeHidden, strangeHidden)
		}
		m.add(at+"attn_norm.weight", strangeHidden)
		m.add(at+"ffn_norm.weight", strangeHidden)
		m.add(at+"ffn_gate_inp.weight", strangeHidden, 4)
		m.add(at+"ffn_gate_exps.weight", strangeHidden, 2*strangeHidden, 4)
		m.add(at+"ffn_up_exps.weight", strangeHidden, 2*strangeHidden, 4)
		m.add(at+"ffn_down_exps.weight", 2*strangeHidden, strangeHidden, 4)
	}
	return m
}

func (m *strange) write(t *testing.T, path string) {
	t.Helper()
	var b bytes.Buffer
	check(t, gguf.Write(&b, m.metadata, m.weights))
	put(t, filepath.Dir(path), filepath.Base(path), b.String())
}

// split writes the model in two parts, as llama.cpp's llama-gguf-split does.
func (m *strange) split(t *testing.T, dir, name string) {
	t.Helper()
	half := len(m.weights) / 2
	for i, weights := range [][]gguf.Weights{m.weights[:half], m.weights[half:]} {
		part := &strange{weights: weights, metadata: []gguf.Entry{{Key: "split.no", Value: uint16(i)},
			{Key: "split.count", Value: uint16(2)}, {Key: "split.tensors.count", Value: int32(len(m.weights))}}}
		if i == 0 {
			part.metadata = append(part.metadata, m.metadata...)
		}
		part.write(t, filepath.Join(dir, fmt.Sprintf("%s-%05d-of-00002.gguf", name, i+1)))
	}
}

// llama.cpp gets every GGUF: of another architecture, and a mixture of experts in two parts of Hugging Face's cache,
// whose files are links. Its sizes are predicted, and the dry run calls the cell unknown.
func TestAnyGGUFRuns(t *testing.T) {
	lightTest(t)
	cmd := program(t, "run", "--engines", "llamacpp", "--models", "phi2.gguf,hf:me/moe,ollama:mine:small",
		"--repetitions", "1", "--max-tokens", "8", "--prompt", "the quick", "--start", "warm")
	phi2(t).write(t, filepath.Join(cmd.Dir, "phi2.gguf"))
	hub := filepath.Join(cmd.Dir, "hub", "models--me--moe")
	experts(t).split(t, filepath.Join(hub, "blobs"), "moe")
	snapshot := filepath.Join(hub, "snapshots", "0123abc")
	check(t, os.MkdirAll(snapshot, 0o755))
	for _, name := range []string{"moe-00001-of-00002.gguf", "moe-00002-of-00002.gguf"} {
		check(t, os.Symlink(filepath.Join("..", "..", "blobs", name), filepath.Join(snapshot, name)))
	}
	store := filepath.Join(cmd.Dir, "ollama")
	experts(t).write(t, filepath.Join(store, "blobs", "sha256-12ab"))
	put(t, store, "manifests/registry.ollama.ai/library/mine/small", `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:12ab"}]}`)
	cmd.Env = append(cmd.Env, "HF_HUB_CACHE="+filepath.Join(cmd.Dir, "hub"), "OLLAMA_MODELS="+store)

	stdout, _ := well(t, resumed(cmd, append(cmd.Args[1:], "--dry-run")...))
	if strings.Count(stdout, "MiB         ?  warm  unknown until launched") != 3 {
		t.Error(stdout)
	}
	well(t, cmd)
	r := recorded(t, cmd.Dir)
	for _, c := range r.Cells {
		if c.Model.SHA256 == "" || c.Model.Parameters == 0 || c.Model.Layers != strangeLayers {
			t.Errorf("cell %d: %+v", c.ID, c.Model)
		}
	}
	for _, a := range r.Attempts {
		if a.Status != record.OK || len(a.Warnings) > 0 && a.Warnings[0].Code == "not-warm" {
			t.Errorf("attempt %d of cell %d: %s, %s %v", a.ID, a.Cell, a.Status, a.Error, a.Warnings)
		}
	}
	stdout, _ = well(t, resumed(cmd, "model", "list", "--local"), "hf:me/moe/moe-00001-of-00002.gguf",
		"ollama:mine:small")
	if strings.Contains(stdout, "moe-00002") {
		t.Error(stdout)
	}
	for _, name := range []string{"hf:me/moe", "ollama:mine:small"} {
		well(t, resumed(cmd, "model", "info", name), "unknown: llamacpp decides")
	}
}
