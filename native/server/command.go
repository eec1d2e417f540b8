package server

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/native/program"
)

// Template is the command that starts a server.
type Template struct {
	Name string
	// Title is what its servers are, as package openai calls them; empty: unknown.
	Title string
	// Command has placeholders in braces. A part in brackets is left out if a placeholder in it has no value.
	Command string
	// Env has variables that are set, with placeholders.
	Env []string
	// Build is the folder of our own build of the program in the cache; empty: there is none.
	Build string
	// Formats of models that it runs, by their names in package models.
	Formats []string
}

// Templates are the servers that llmparity knows how to start. TGI is no longer developed: attach to a running one.
var Templates = []*Template{
	{Name: "vllm", Title: "vLLM", Build: "huggingface/current/bin", Formats: []string{models.HuggingFace},
		Command: "vllm serve {model} --host {host} --port {port} --served-model-name {name} --dtype {dtype} " +
			"[--max-model-len {context}] [--tensor-parallel-size {tensor_parallel_size}] [--quantization {quantization}] " +
			"[--kv-cache-dtype {kv_cache_dtype}] [--gpu-memory-utilization {gpu_memory_utilization}] " +
			"[--kv-cache-memory-bytes {kv_cache_bytes}]",
		Env: []string{"VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1", "HF_HUB_OFFLINE={offline}",
			"OMP_NUM_THREADS={cpu_threads}",
			"VLLM_CPU_OMP_THREADS_BIND={cpu_binding}", "VLLM_CPU_KVCACHE_SPACE="}},
	{Name: "sglang", Title: "SGLang", Formats: []string{models.HuggingFace},
		Command: "python3 -m sglang.launch_server --model-path {model} --host {host} --port {port} --served-model-name {name} " +
			"--dtype {dtype} --enable-metrics [--context-length {context}] [--tp-size {tensor_parallel_size}] " +
			"[--quantization {quantization}] [--kv-cache-dtype {kv_cache_dtype}] [--mem-fraction-static {gpu_memory_utilization}]",
		Env: []string{"HF_HUB_OFFLINE={offline}"}},
	{Name: "llama-server", Title: "llama-server", Build: "llamacpp/current/bin", Formats: []string{models.GGUF},
		Command: "llama-server -m {model} --host {host} --port {port} --alias {name} [-c {all_contexts}] -np {slots} -t {threads} " +
			"--metrics"},
	{Name: "llama-cpp-python", Formats: []string{models.GGUF},
		Command: "python3 -m llama_cpp.server --model {model} --host {host} --port {port} --model_alias {name} [--n_ctx {context}] " +
			"--n_threads {threads}"},
	{Name: "mlc_llm", Formats: []string{models.WebLLM},
		Command: "mlc_llm serve {model} --host {host} --port {port} [--overrides context_window_size={context}]"},
}

// TemplateNames lists the templates.
func TemplateNames() (out []string) {
	for _, t := range Templates {
		out = append(out, t.Name)
	}
	return out
}

func template(name string) *Template {
	i := slices.IndexFunc(Templates, func(t *Template) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return Templates[i]
}

// host is where servers listen.
const host = "127.0.0.1"

// values are those of placeholders. An empty one has no value.
type values map[string]string

// valuesOf are those that follow from settings and a model, without the port.
func valuesOf(s engine.Settings, m models.Model) values {
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	slots := max(1, s.Slots)
	v := values{"host": host, "port": "PORT", "model": cmp.Or(m.Path, m.Name), "name": m.Name,
		"dtype":   torch(computes(s.DType)),
		"context": number(m.Context), "all_contexts": number(m.Context * slots), "slots": number(slots),
		"threads": number(max(1, s.Threads)), "tensor_parallel_size": number(s.TensorParallel),
		"quantization": s.Quantization, "kv_cache_dtype": cacheType(s)}
	if s.GPUMemory > 0 {
		v["gpu_memory_utilization"] = strconv.FormatFloat(s.GPUMemory, 'g', -1, 64)
	}
	if m.Path != "" {
		v["offline"] = "1"
	}
	return v
}

// computes is the dtype of weights and activations: f32 unless set, as in other engines.
func computes(name string) string { return cmp.Or(name, "f32") }

// torch is the name of a dtype in vLLM and SGLang.
func torch(name string) string {
	if d, ok := dtype.Named(name); ok && d.Computes {
		return d.Torch
	}
	return name
}

// cacheType is the dtype of the KV cache as a server is told; empty: that of the activations, which it takes by itself.
func cacheType(s engine.Settings) string {
	switch s.KVDType {
	case "", computes(s.DType):
		return ""
	case "fp8", "fp8_e5m2":
		return s.KVDType
	}
	return torch(s.KVDType)
}

var (
	optional    = regexp.MustCompile(`\[([^\[\]]*\{[^\[\]]*)\]`)
	placeholder = regexp.MustCompile(`\{([a-z_]+)\}`)
)

// words are the words of a command with its placeholders filled in. Values may contain spaces.
func words(command string, v values) ([]string, error) {
	unknown := ""
	missing := func(part string) bool {
		return slices.ContainsFunc(placeholder.FindAllStringSubmatch(part, -1),
			func(m []string) bool { return v[m[1]] == "" })
	}
	command = optional.ReplaceAllStringFunc(command, func(part string) string {
		if missing(part) {
			return ""
		}
		return part[1 : len(part)-1]
	})
	out, err := program.Words(command)
	for i, word := range out {
		out[i] = placeholder.ReplaceAllStringFunc(word, func(name string) string {
			value, known := v[name[1:len(name)-1]]
			if !known && unknown == "" {
				unknown = name
			}
			return value
		})
	}
	if err == nil && unknown != "" {
		err = fmt.Errorf("unknown placeholder %s; there are {%s}", unknown,
			strings.Join(slices.Sorted(maps.Keys(v)), "}, {"))
	}
	return out, err
}

// variable matches a word that sets a variable, as before a command in a shell.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// split separates variables from the command that follows them.
func split(all []string) (env, argv []string) {
	n := 0
	for n < len(all) && variable.MatchString(all[n]) {
		n++
	}
	return all[:n], all[n:]
}

// environment returns the variables of a server: ours, with the template's in place of them. One that the template has
// without a value is removed; one whose placeholder has none is left alone.
func (t *Template) environment(ours []string, v values) []string {
	out := slices.Clone(ours)
	for _, line := range t.Env {
		name, said, _ := strings.Cut(line, "=")
		value := placeholder.ReplaceAllStringFunc(said, func(p string) string { return v[p[1:len(p)-1]] })
		if value == "" && said != "" {
			continue
		}
		out = slices.DeleteFunc(out, func(o string) bool { return strings.HasPrefix(o, name+"=") })
		if value != "" {
			out = append(out, name+"="+value)
		}
	}
	return out
}
