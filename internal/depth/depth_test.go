package depth_test

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/pprof/profile"

	"llmparity/internal/depth"
	"llmparity/internal/kit/check"
)

func TestRowsSurviveCSV(t *testing.T) {
	rows := []depth.Row{
		{Engine: "a", Launch: 1, Phase: "prefill", Layer: 3, Role: depth.Norm, Kernel: `rms, "norm"`, Calls: 2,
			Self: 5, Bytes: 7},
		{Engine: "a", Launch: 1, Phase: "decode", Layer: depth.NoLayer, Role: depth.Wait, Kernel: "between kernels",
			Self: 9},
	}
	var b bytes.Buffer
	check.Err(t, depth.WriteCSV(&b, rows))
	got, err := depth.ReadCSV(&b)
	check.Err(t, err)
	if !reflect.DeepEqual(got, rows) {
		t.Errorf("%+v, want %+v", got, rows)
	}
}

func TestBadCSVIsRefused(t *testing.T) {
	const head = "engine,launch,phase,layer,role,kernel,calls,self_ns,bytes\n"
	for text, want := range map[string]string{
		"":                                    "line 1",
		"a,b,c,d,e,f,g,h,i\n":                 "line 1",
		head + "a,1,decode,,norm,k,1,x,0\n":   `line 2: self_ns must be a number of at least 0, got "x"`,
		head + "a,1,decode,-2,norm,k,1,1,0\n": `line 2: layer must be`,
	} {
		if _, err := depth.ReadCSV(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The names are those of our own kernels, of onnxruntime-web, of llama.cpp and of modules in transformers.
func TestRoles(t *testing.T) {
	for name, want := range map[string]depth.Role{
		"norm_qkv_one_kernel": depth.Attention, "norm_gate_up_one_kernel": depth.FeedForward,
		"norm_logits_kernel":  depth.Head,
		"embed_tokens_kernel": depth.Embedding, "kv_append_kernel": depth.KVWrite,
		"rank_tokens_kernel": depth.Sampling,
		"down_one_kernel":    depth.FeedForward, "rotate_split_kernel": depth.Attention,
		"softmax_finish_kernel": depth.Sampling,
		"MatMulNBits":           depth.Matrix, "SkipSimplifiedLayerNormalization": depth.Norm,
		"GroupQueryAttention": depth.Attention,
		"RotaryEmbedding":     depth.Attention, "ggml_vec_dot_f32": depth.Matrix,
		"ggml_compute_forward_soft_max": depth.Attention,
		"ggml_compute_forward_get_rows": depth.Embedding, "ggml_barrier": depth.Wait,
		"model.layers.3.input_layernorm": depth.Norm, "model.layers.3.self_attn.q_proj": depth.Attention,
		"model.layers.3.self_attn.q_norm": depth.Norm, "model.layers.3.mlp.down_proj": depth.FeedForward,
		"model.embed_tokens": depth.Embedding, "lm_head": depth.Head, "aten::argmax": depth.Sampling,
		"aten::copy_": depth.Copy, "aten::mm": depth.Matrix, "model.layers.3": depth.Other,
	} {
		if got := depth.RoleOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Two samples of perf, of which the first counts: stacks are outermost first, and a file stands for what has no symbol.
func TestPerf(t *testing.T) {
	s := depth.NewStacks(time.Second)
	first := time.Duration(5460.467246 * 1e9)
	text := bytes.NewReader(check.Read(t, "testdata/perf.txt"))
	check.Err(t, depth.ReadPerf(text, func(at time.Duration) *depth.Stacks {
		if at < first+time.Millisecond {
			return s
		}
		return nil
	}))
	if s.Total() != 1 {
		t.Fatalf("%d samples", s.Total())
	}
	for stack := range s.Seen {
		if !strings.HasPrefix(stack, "[dash];__libc_start_main@@GLIBC_2.34;__libc_start_call_main;[dash];") ||
			!strings.HasSuffix(stack, ";__strcmp_evex") {
			t.Error(stack)
		}
	}
}

// Each form of the stacks has the same samples.
func TestForms(t *testing.T) {
	s := depth.NewStacks(10 * time.Millisecond)
	s.Add([]string{"main", "decode", "ggml_vec_dot_f32"}, 3)
	s.Add([]string{"main", "decode"}, 1)
	var folded, pprof, scope bytes.Buffer
	check.Err(t, s.WriteFolded(&folded))
	back, err := depth.ReadFolded(&folded, s.Every)
	check.Err(t, err)
	if !reflect.DeepEqual(back, s) {
		t.Errorf("%v, want %v", back, s)
	}
	s.Generations, s.Samples = 7, 2
	check.Err(t, s.Pprof().Write(&pprof))
	again, err := depth.ReadPprof(bytes.NewReader(pprof.Bytes()))
	check.Err(t, err)
	if !reflect.DeepEqual(again, s) {
		t.Errorf("%+v, want %+v", again, s)
	}
	p, err := profile.Parse(&pprof)
	check.Err(t, err)
	check.Err(t, p.CheckValid())
	var ns int64
	for _, sample := range p.Sample {
		if leaf := sample.Location[0].Line[0].Function.Name; leaf == "ggml_vec_dot_f32" {
			ns += sample.Value[1]
		}
	}
	if ns != 30_000_000 {
		t.Errorf("pprof has %d ns of the leaf", ns)
	}
	check.Err(t, s.WriteSpeedscope(&scope, "x"))
	got := scope.String()
	if !strings.Contains(got, `"weights":[0.01,0.03]`) || !strings.Contains(got, `"endValue":0.04`) {
		t.Error(got)
	}
	rows := s.Rows("decode")
	if len(rows) != 2 || s.Leaves()["ggml_vec_dot_f32"] != 3 {
		t.Errorf("%+v", rows)
	}
}

// A function that became slow is the only change, though the shares of all others fall, and though the machine is
// slower by a tenth. What is within chance is no change.
func TestChanges(t *testing.T) {
	stacks := func(generations int, seen map[string]int64) *depth.Stacks {
		return &depth.Stacks{Every: 10 * time.Millisecond, Generations: generations, Seen: seen}
	}
	before := stacks(10, map[string]int64{"main;product": 600, "main;norm": 50, "main;copy": 40, "main": 8})
	after := stacks(5, map[string]int64{"main;product": 330, "main;norm": 225, "main;copy": 26, "main": 5,
		"main;new": 8})
	got := depth.Changes(after, before)
	if len(got) != 1 || got[0].Stack != "main;norm" || got[0].By != 400*time.Millisecond {
		t.Errorf("%+v", got)
	}
	if got := depth.Changes(before, before); len(got) != 0 {
		t.Errorf("of the same: %+v", got)
	}
	gone := depth.Changes(stacks(10, map[string]int64{"main;product": 600}), before)
	if len(gone) != 2 || gone[0].Stack != "main;norm" || gone[0].By != -50*time.Millisecond {
		t.Errorf("%+v", gone)
	}
}

func TestCPUProfile(t *testing.T) {
	const text = `{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2,4]},
		{"id":2,"callFrame":{"functionName":"generate"},"children":[3]},{"id":3,"callFrame":{"functionName":""}},
		{"id":4,"callFrame":{"functionName":"(idle)"}}],"samples":[3,4,2],"timeDeltas":[100,1000,50]}`
	s, err := depth.ReadCPUProfile(strings.NewReader(text))
	check.Err(t, err)
	want := map[string]int64{"generate;(anonymous)": 100, "generate": 50}
	if !reflect.DeepEqual(s.Seen, want) || s.Samples != 2 || s.Every != time.Microsecond {
		t.Errorf("%v", s)
	}
}

// The table puts engines beside each other and says how much of the clock the rows explain.
func TestTable(t *testing.T) {
	p := map[string]depth.Profile{
		"one": {Wall: map[string]time.Duration{"decode": 10 * time.Millisecond}, Rows: []depth.Row{
			{Phase: "decode", Role: depth.FeedForward, Kernel: "ffn", Calls: 4, Self: 6 * time.Millisecond,
				Bytes: 1 << 20},
			{Phase: "decode", Role: depth.Wait, Kernel: "between kernels", Calls: 3, Self: 2 * time.Millisecond}}},
		"two": {Rows: []depth.Row{{Phase: "decode", Role: depth.Matrix, Kernel: "dot", Calls: 1,
			Self: time.Millisecond}},
			Notes: []string{"of samples"}},
	}
	var b strings.Builder
	check.Err(t, depth.Table(&b, p, []string{"one", "two"}, 5))
	for _, want := range []string{"decode, by role", "of the clock  80.0%", "75.0%", "note: of samples",
		"decode  feed-forward"} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), "  "), strings.Join(strings.Fields(want), "  ")) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// Three engines with large figures fit a terminal. A kernel counts over layers, and the layer that takes most is named.
func TestTableOfThree(t *testing.T) {
	long, p := []string{"transformersjs", "huggingface", "llamacpp"}, map[string]depth.Profile{}
	for _, engine := range long {
		p[engine] = depth.Profile{Wall: map[string]time.Duration{"decode": 250 * time.Second}, Rows: []depth.Row{
			{Phase: "decode", Layer: 0, Role: depth.Matrix, Kernel: "mm", Calls: 1 << 20, Self: 50 * time.Second,
				Bytes: 1 << 40},
			{Phase: "decode", Layer: 7, Role: depth.Matrix, Kernel: "mm", Calls: 1 << 20, Self: 150 * time.Second},
			{Phase: "decode", Layer: depth.NoLayer, Role: depth.Wait, Kernel: "waits", Calls: 1, Self: time.Second}}}
	}
	var b strings.Builder
	check.Err(t, depth.Table(&b, p, long, 5))
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if got := strings.Count(b.String(), "2097152  7 (75%)"); got != 3 {
		t.Errorf("%d engines name the slow layer\n%s", got, b.String())
	}
}

// What is held at a moment has a table by role, and takes no part in those of time. A role counts at the last moment
// that has it.
func TestTableOfMemory(t *testing.T) {
	p := map[string]depth.Profile{"one": {Rows: []depth.Row{
		{Phase: "decode", Role: depth.Norm, Kernel: "norm", Calls: 1, Self: time.Second},
		{Phase: "decode", Layer: 1, Role: depth.Memory, Kernel: "intermediate tensors", Bytes: 9 << 20},
		{Phase: "after load", Layer: 1, Role: depth.FeedForward, Kernel: "parameters", Bytes: 3 << 20},
		{Phase: "after load", Layer: 2, Role: depth.FeedForward, Kernel: "parameters", Bytes: 4 << 20},
		{Phase: "before inference", Role: depth.KVWrite, Kernel: "KV cache", Bytes: 1 << 20},
		{Phase: "after inference", Role: depth.KVWrite, Kernel: "KV cache", Bytes: 5 << 20},
		{Phase: "before load", Role: depth.Memory, Kernel: "PSS", Bytes: 370 << 20},
		{Phase: "after load", Role: depth.Memory, Kernel: "PSS", Bytes: 380 << 20}}}}
	var b strings.Builder
	check.Err(t, depth.Table(&b, p, []string{"one"}, 5))
	const want = `decode, by role; MiB of the kernels' operands
                    one
role    ms   share  MiB
norm  1000  100.0%    –
sum   1000

held, by role
              one
role          MiB
KV write        5
feed-forward    7

held by the process, MiB
             one
moment       PSS
before load  370
after load   380

one, its own kernels
phase   role  ms    calls  most in layer  kernel
decode  norm  1000  1      0              norm

`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Whatever a file has, the parsers return.
func FuzzParsers(f *testing.F) {
	perf, err := os.ReadFile("testdata/perf.txt")
	check.Err(f, err)
	f.Add(perf)
	f.Add([]byte("main;decode 3\n"))
	f.Add([]byte(`{"nodes":[{"id":1,"children":[1]}],"samples":[1],"timeDeltas":[5]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = depth.ReadPerf(bytes.NewReader(text), func(time.Duration) *depth.Stacks { return depth.NewStacks(1) })
		_, _ = depth.ReadPprof(bytes.NewReader(text))
		_, _ = depth.ReadCPUProfile(bytes.NewReader(text))
		_, _ = depth.ReadCSV(bytes.NewReader(text))
		s, err := depth.ReadFolded(bytes.NewReader(text), 1)
		if err == nil && s.Total() < 0 {
			t.Error("a negative number of samples")
		}
	})
}
