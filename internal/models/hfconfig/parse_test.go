package hfconfig

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
)

const plainLlama = `{"model_type":"llama","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100}`

// with replaces a field of the plain model's.
func with(from, to string) string { return strings.Replace(plainLlama, from, to, 1) }

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		kind fault.Kind
		says []string
	}{
		"empty":       {"", fault.BadModel, []string{"config.json", "not a JSON object"}},
		"no object":   {"[1]", fault.BadModel, []string{"config.json", "array"}},
		"cut off":     {plainLlama[:50], fault.BadModel, []string{"config.json", "unexpected end"}},
		"more behind": {plainLlama + "{}", fault.BadModel, []string{"after top-level value"}},
		"no type":     {with(`"model_type":"llama",`, ""), fault.BadModel, []string{"model_type is missing"}},
		"unknown type": {with(`"llama"`, `"lama3"`), fault.UnknownArch,
			[]string{`"lama3"`, "llama", "--num-layers", "--model-params"}},
		"no layers": {with(`"num_hidden_layers":2,`, ""), fault.BadModel,
			[]string{"num_hidden_layers", "is missing"}},
		"negative": {with(`"hidden_size":64`, `"hidden_size":-64`), fault.BadModel,
			[]string{"hidden_size is -64"}},
		"zero": {with(`"hidden_size":64`, `"hidden_size":0`), fault.BadModel,
			[]string{"hidden_size is 0"}},
		"huge": {with(`"hidden_size":64`, `"hidden_size":1e300`), fault.BadModel,
			[]string{"hidden_size is 1e300"}},
		"overflow": {with(`"hidden_size":64,"intermediate_size":128`,
			`"hidden_size":1073741824,"intermediate_size":1073741824`), fault.BadModel,
			[]string{"more than any model"}},
		"too many layers": {with(`"num_hidden_layers":2`, `"num_hidden_layers":1000000000`), fault.BadModel,
			[]string{"layers"}},
		"heads don't divide": {with(`"num_attention_heads":4`, `"num_attention_heads":5`), fault.BadModel,
			[]string{"hidden_size 64", "5 attention heads", "head_dim"}},
		"key-value heads": {with(`"num_attention_heads":4`, `"num_attention_heads":4,"num_key_value_heads":3`),
			fault.BadModel, []string{"4 attention heads", "3 key-value heads"}},
		"flag": {with(`"vocab_size":100`, `"vocab_size":100,"tie_word_embeddings":1`), fault.BadModel,
			[]string{"tie_word_embeddings is 1"}},
		"quantised somehow": {with(`"vocab_size":100`,
			`"vocab_size":100,"quantization_config":{"quant_method":"magic"}`), fault.UnknownArch,
			[]string{"quantization_config.quant_method", "magic", "--quantization"}},
		"quantisation's type": {with(`"vocab_size":100`, `"vocab_size":100,"quantization_config":4`), fault.BadModel,
			[]string{"quantization_config is 4"}},
		"quantisation's bits": {with(`"vocab_size":100`,
			`"vocab_size":100,"quantization_config":{"quant_method":"awq","bits":99}`), fault.BadModel,
			[]string{"bits is 99"}},
		"layer types": {`{"model_type":"gemma2","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100,"layer_types":["full_attention"]}`,
			fault.BadModel, []string{"layer_types has 1 entries", "2 layers"}},
		"latent without rank": {`{"model_type":"deepseek_v3","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100}`,
			fault.BadModel, []string{"kv_lora_rank", "is missing", "deepseek_v3"}},
		"experts without number": {`{"model_type":"mixtral","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100}`,
			fault.BadModel, []string{"num_local_experts", "is missing"}},
		"part's own field": {`{"model_type":"mistral3","text_config":{"model_type":"mistral","num_hidden_layers":2,"hidden_size":-1}}`, fault.BadModel, []string{"text_config.hidden_size is -1"}},
		"more experts than there are": {`{"model_type":"mixtral","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100,"num_local_experts":2,"num_experts_per_tok":3}`,
			fault.BadModel, []string{"3 experts of 2"}},
		"part is no object": {`{"model_type":"mistral3","text_config":5}`, fault.BadModel,
			[]string{"text_config is 5"}},
	} {
		_, err := Parse("dir/config.json", []byte(c.text))
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if fault.Of(err) != c.kind {
			t.Errorf("%s: %v has class %s, %s is right", name, err, fault.Of(err), c.kind)
		}
		for _, word := range append(c.says, "dir/config.json") {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q doesn't say %q", name, err, word)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q is several lines", name, err)
		}
	}
}

// The rules of a family cope with missing fields.
func TestEveryFamilyIsRead(t *testing.T) {
	const sizes = `"hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,"vocab_size":100`
	const more = `,"intermediate_size":128,"num_experts":8,"num_local_experts":8,"moe_num_experts":8,"n_routed_experts":8,
		"moe_intermediate_size":32,"shared_expert_intermediate_size":32,"kv_lora_rank":16,"qk_rope_head_dim":8,"ffn_dim":128,
		"qk_nope_head_dim":8,"v_head_dim":8,"n_positions":64,"max_position_embeddings":64,"max_seq_len":64,
		"ffn_hidden_size":128`
	for kind := range families {
		for given, text := range map[string]string{"all": sizes + more, "sizes alone": sizes,
			"a dense model": sizes + `,"intermediate_size":128`} {
			m, err := Parse("config.json", []byte(`{"model_type":"`+kind+`",`+text+`}`))
			if given == "all" && (err != nil || m.Parameters() == 0) || err != nil && fault.Of(err) != fault.BadModel {
				t.Errorf("%s, %s: %d parameters, %v", kind, given, m.Parameters(), err)
			}
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); fault.Of(err) != fault.BadModel || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("an empty folder: %v", err)
	}
	large := filepath.Join(dir, "config.json")
	check.Err(t, os.WriteFile(large, nil, 0o600))
	check.Err(t, os.Truncate(large, maxConfig+1))
	if _, err := Open(dir); fault.Of(err) != fault.BadModel ||
		!strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("a large file: %v", err)
	}
}

// The text part of a multimodal model inherits fields of the whole.
func TestTextPart(t *testing.T) {
	m, err := Parse("config.json", []byte(
		`{"model_type":"gemma3","tie_word_embeddings":true,"torch_dtype":"bfloat16","vision_config":{},
		"text_config":{"model_type":"gemma3_text","hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":34,"sliding_window":1024}}`))
	check.Err(t, err)
	// 4,300,079,472 on the hub, with 419,816,304 of the image encoder
	if got := m.Parameters(); got != 3880263168 {
		t.Errorf("%d parameters", got)
	}
	if len(m.Notes) != 1 || m.DType != "bfloat16" || m.MaxContext != 0 {
		t.Errorf("%+v", m)
	}
}

func TestQuantization(t *testing.T) {
	for text, want := range map[string]Quantized{
		`{"quant_method":"awq","bits":4,"group_size":128,"zero_point":true}`:                                                                          {Method: "awq", Bits: 4, Group: 128},
		`{"quant_method":"gptq","bits":8,"group_size":-1,"desc_act":true}`:                                                                            {Method: "gptq", Bits: 8},
		`{"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_use_double_quant":true}`:                                                        {Method: "bitsandbytes-4bit", Bits: 4, Group: 64, Double: true},
		`{"quant_method":"bitsandbytes","load_in_8bit":true}`:                                                                                         {Method: "bitsandbytes-8bit", Bits: 8},
		`{"quant_method":"fp8","weight_block_size":[128,128]}`:                                                                                        {Method: "fp8", Bits: 8, Block: [2]int{128, 128}},
		`{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":4,"type":"int","group_size":128,"symmetric":true}}}}`: {Method: "compressed-tensors", Bits: 4, Group: 128, Symmetric: true},
		`{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":4,"type":"float","group_size":16}}}}`:                 {Method: "nvfp4", Bits: 4, Group: 16, Symmetric: true},
		`{"quant_method":"modelopt","quant_algo":"NVFP4"}`:                                                                                            {Method: "nvfp4", Bits: 4, Group: 16},
		`{"quant_method":"modelopt","quantization":{"quant_algo":"FP8"}}`:                                                                             {Method: "fp8", Bits: 8},
	} {
		m, err := Parse("config.json", []byte(with(`"vocab_size":100`, `"vocab_size":100,"quantization_config":`+text)))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if !reflect.DeepEqual(*m.Quantized, want) {
			t.Errorf("%s: %+v, %+v is right", text, *m.Quantized, want)
		}
	}
}

func TestKeptModules(t *testing.T) {
	m, err := Open("testdata/gpt-oss-20b.json")
	check.Err(t, err)
	for _, w := range m.Weights {
		want := int64(0)
		if w.Linear && strings.HasPrefix(w.Name, "self_attn.") {
			want = w.Times
		}
		if got := m.Quantized.Kept(w, m.Layers); got != want {
			t.Errorf("%s: %d of %d stay, %d are right", w.Name, got, w.Times, want)
		}
	}
	for list, want := range map[string]struct{ q, down int64 }{
		`["lm_head"]`: {0, 0}, `["model.layers.1.self_attn.q_proj"]`: {1, 0}, `["re:.*self_attn.*"]`: {2, 0},
		`["self_attn"]`: {2, 0}, `["model.layers.0"]`: {1, 1},
		`["model.layers.1.*"]`: {1, 1}, `["*q_proj"]`: {2, 0}, `["re:.*layers\\.0\\.mlp\\.(gate|down)_proj"]`: {0, 1},
		`["model.layers.0.mlp.down_proj", "model.layers.1.mlp.down_proj"]`: {0, 2},
		`["re:(?!x)"]`: {0, 0},
	} {
		m, err := Parse("config.json", []byte(
			with(`"vocab_size":100`, `"vocab_size":100,"quantization_config":{"quant_method":"fp8","ignore":`+list+
				`}`)))
		if err != nil {
			t.Fatal(list, err)
		}
		for _, w := range m.Weights {
			right, is := map[string]int64{"self_attn.q_proj.weight": want.q, "mlp.down_proj.weight": want.down}[w.Name]
			if got := m.Quantized.Kept(w, m.Layers); is && got != right {
				t.Errorf("%s: of %s %d stay, %d are right", list, w.Name, got, right)
			}
		}
		if noted := strings.Contains(strings.Join(m.Notes, " "), "cannot be read"); noted != strings.Contains(
			list, "(?!") {
			t.Errorf("%s: %q", list, m.Notes)
		}
	}
}

// Missing fields have the defaults of transformers' classes.
func TestClassDefaults(t *testing.T) {
	for text, want := range map[string]int64{
		`{"model_type":"llava","text_config":{"model_type":"llama","vocab_size":32064}}`: 6738415616 + 2*64*4096,
		`{"model_type":"qwen3","hidden_size":100,"intermediate_size":10,"num_hidden_layers":1,"num_attention_heads":3,"num_key_value_heads":1,"vocab_size":10}`: 2*10*100 +
			100*128*(3+3+1+1) + 3*10*100 + 3*100 + 2*128,
	} {
		m, err := Parse("config.json", []byte(text))
		if err != nil || m.Parameters() != want {
			t.Errorf("%s: %d parameters, %d are right (%v)", text, m.Parameters(), want, err)
		}
	}
}

// FuzzParse looks for panics, impossible numbers and errors of other classes.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		text := check.Read(f, file)
		f.Add(text)
	}
	f.Add([]byte(`{"model_type":"gemma3","text_config":{"hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":34}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse("config.json", text)
		if err != nil {
			if c := fault.Of(err); c != fault.BadModel && c != fault.UnknownArch {
				t.Fatalf("%v has class %s", err, c)
			}
			return
		}
		if n := m.Parameters(); n <= 0 || n > maxParameters || m.ActiveParameters() > n || KVValues(m.Caches) <= 0 ||
			KVValues(m.Caches) > math.MaxInt64/1024 {
			t.Fatalf("%d parameters, %d active, %d values a token", n, m.ActiveParameters(), KVValues(m.Caches))
		}
		layers := 0
		for _, c := range m.Caches {
			layers += c.Layers
		}
		if layers != m.Layers {
			t.Fatalf("%d layers, caches of %d", m.Layers, layers)
		}
	})
}
