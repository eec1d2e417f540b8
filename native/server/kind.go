package server

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/openai"
	"llmparity/native/program"
)

// Names of the engines in plans and records.
const (
	VLLMName   = "vllm"
	SGLangName = "sglang"
	AnyName    = "server"
)

// Config is the configuration of a server that llmparity starts.
type Config struct {
	kind string // name of its engine

	Path     string // of the program that the template names first; empty: searched for
	Args     string // further arguments
	CacheMiB int    // size of the KV cache; 0: what the requests need on a CPU, else what the server takes

	Template string // of AnyName
	Command  string // instead of a template
	API      string // openai.Completions unless set
}

// folders are the formats of engines that run Hugging Face folders: a GGUF becomes one.
var folders = []string{models.GGUF, models.HuggingFace}

// VLLM is vLLM's server.
var VLLM = kind(VLLMName, "vLLM", &engine.Kind{Contained: true,
	Presets: []string{"engines", "concurrency"}, Formats: folders, Memory: VLLMMemory,
	KVTypes: []string{"f32", "f16", "bf16", "fp8", "fp8_e5m2"},
	Runs:    func(string) string { return "converts it to a Hugging Face folder; computes in --dtype" }})

// SGLang is SGLang's server.
var SGLang = kind(SGLangName, "SGLang", &engine.Kind{Formats: folders,
	KVTypes: []string{"f32", "f16", "bf16", "fp8", "fp8_e5m2"}})

// Any is a server that any command starts.
var Any = kind(AnyName, "server", &engine.Kind{Formats: []string{models.GGUF, models.HuggingFace, models.WebLLM}})

// VLLMMemory describes how vLLM holds models in memory.
var VLLMMemory = &engine.Memory{Name: VLLMName, Title: "vLLM", Runtime: "vllm", FourBits: "awq",
	KVTypes: []string{"f32", "f16", "bf16", "fp8", "fp8_e5m2"},
	Program: engine.Program{Bytes: 0.9 * 1024 * record.MiB, Devices: true, Low: 0.4, High: 2.5,
		How: "rule of thumb: a CUDA context and captured graphs on each device; excludes main memory"}}

// kind adds what the three share.
func kind(name, title string, k *engine.Kind) *engine.Kind {
	k.Name, k.Title, k.Section, k.Deploys = name, title, name, true
	k.Config = func() engine.Config { return &Config{kind: name} }
	k.Shared, k.Axes, k.Inside = []string{"threads", "dtype", "container"}, []string{engine.AxisThreads}, true
	k.DTypes = []string{"f32", "f16", "bf16"}
	k.New = func(_ string, c engine.Config, s engine.Settings) engine.Engine { return New(*c.(*Config), s) }
	k.Program = func(c engine.Config, s engine.Settings) (string, error) {
		if e := New(*c.(*Config), s); e.template() != nil || e.config.Command != "" {
			return e.find()
		}
		return "", nil
	}
	if name == AnyName {
		return k
	}
	k.Parts = func(c engine.Config, s engine.Settings) []engine.Search {
		e := New(*c.(*Config), s)
		return []engine.Search{{Name: title, Find: func(context.Context) engine.Part {
			path, err := e.find()
			if err == nil && name == SGLangName && e.config.Path == "" && version(e.in, path, name) == "" {
				err = errors.New("not installed") // a python3 is everywhere
			}
			if err != nil && e.config.Path == "" {
				return engine.Part{Absent: true, Detail: "only for " + name + ": install it, and put it on PATH"}
			}
			return engine.Part{Version: version(e.in, path, name), Path: path, Err: err}
		}}}
	}
	k.Found = func(h engine.Here) engine.Finding {
		p := h.Parts[title]
		if p.Path == "" {
			return engine.Finding{Name: name, Can: "not installed"}
		}
		return engine.Finding{Name: name, Ready: true, Version: p.Version, Path: p.Path,
			Can: "serve Hugging Face folders, started and ended by llmparity"}
	}
	return k
}

// Fields returns the settings for users.
func (c *Config) Fields() []engine.Field {
	args := engine.Field{To: &c.Args, Flag: c.kind + "-args", Key: "args",
		Help: "further arguments of the server, e.g. \"--enforce-eager\""}
	switch c.kind {
	case VLLMName:
		return []engine.Field{
			{To: &c.Path, Flag: "vllm", Place: true, Help: "path of vllm (default: $LLMPARITY_VLLM, then PATH, then the build of " +
				"scripts/setup vllm)"},
			args,
			{To: &c.CacheMiB, Flag: "vllm-kv-cache-mib", Key: "kv_cache_mib", Zero: "what the requests need on a CPU, else a " +
				"share of each GPU", Help: "size of the KV cache that vLLM reserves, in MiB"},
		}
	case SGLangName:
		return []engine.Field{
			{To: &c.Path, Flag: "sglang-python", Place: true, Help: "path of the python that has SGLang (default: python3 on PATH)"},
			args,
		}
	}
	return []engine.Field{
		{To: &c.Command, Flag: "server-command", Key: "command",
			Help: "command that starts an OpenAI-compatible server, with {model} and {port} (docs/howto/start-a-server.md)"},
		{To: &c.Template, Flag: "server-template", Key: "template", OneOf: TemplateNames(),
			Help: "ready command instead: " + strings.Join(TemplateNames(), ", ")},
		args,
		{To: &c.API, Flag: "server-api", Key: "api", OneOf: []string{openai.Completions, openai.Chat},
			Help: "endpoint: completions (raw prompt) or chat (prompt in the server's chat template)"},
	}
}

// Check refuses contradicting flags.
func (c *Config) Check() error {
	if c.Command != "" && c.Template != "" {
		return fault.New(fault.Usage, "omit one of them", "--server-command cannot be combined with --server-template")
	}
	return nil
}

// CheckPlan refuses a command that cannot work.
func (c *Config) CheckPlan(s engine.Settings) error {
	if _, err := program.Words(c.Args); err != nil {
		return fmt.Errorf("args: %w", err)
	}
	if c.CacheMiB < 0 {
		return fmt.Errorf("kv_cache_mib: %d is negative", c.CacheMiB)
	}
	switch {
	case c.kind != AnyName:
		return nil
	case c.Command != "" && c.Template != "":
		return errors.New("command: cannot be combined with template; remove one")
	case c.Command == "" && c.Template == "":
		return errors.New("command: missing; set command, or template: " + strings.Join(TemplateNames(), ", "))
	case c.Command == "":
		return nil
	}
	for _, name := range []string{"{model}", "{port}"} {
		if !strings.Contains(c.Command, name) {
			return fmt.Errorf("command: lacks %s, which llmparity fills in", name)
		}
	}
	all, err := words(c.Command, known(valuesOf(s, models.Model{})))
	if _, argv := split(all); err == nil && len(argv) == 0 {
		err = errors.New("names no program")
	}
	if err != nil {
		return fmt.Errorf("command: %w", err)
	}
	return nil
}

// known has all placeholders, also those without a value.
func known(v values) values {
	for _, name := range []string{"gpu_memory_utilization", "kv_cache_bytes", "offline", "cpu_threads", "cpu_binding"} {
		if _, ok := v[name]; !ok {
			v[name] = ""
		}
	}
	return v
}

// template is the ready command; nil: the user's own.
func (e *Engine) template() *Template {
	if e.config.kind != AnyName {
		return template(e.config.kind)
	}
	return template(e.config.Template)
}

// guessed is the template whose program a command starts; nil: unknown.
func guessed(argv []string) *Template {
	line := strings.Join(argv, " ")
	i := slices.IndexFunc(Templates, func(t *Template) bool {
		first, _ := program.Words(t.Command)
		if first[0] == "python3" { // the module tells
			return strings.Contains(line, " "+first[2]+" ")
		}
		return strings.HasSuffix(strings.Fields(line + " x")[0], first[0])
	})
	if i < 0 {
		return nil
	}
	return Templates[i]
}

// find finds the program.
func (e *Engine) find() (string, error) {
	if e.template() == nil && e.config.Command == "" {
		return "", engine.SetUp(fault.New(fault.Usage, "use --server-template "+strings.Join(TemplateNames(), " or ")+
			", or --server-command", "server: no command given"))
	}
	argv := e.argv(valuesOf(e.settings, models.Model{}))
	p := program.Program{Names: argv[:1], Flag: "the command", In: e.in, Kind: noProgram,
		Do: "install it, or correct the command"}
	if t := e.template(); t != nil {
		p.Build = t.Build
	}
	switch e.config.kind {
	case VLLMName:
		p.Flag, p.Variable, p.Do = "--vllm", "LLMPARITY_VLLM", "install vLLM, or run scripts/setup vllm for a CPU build"
	case SGLangName:
		p.Flag, p.Do = "--sglang-python", "install SGLang, or name the python that has it"
	}
	if strings.Contains(argv[0], "/") && e.in == nil {
		path, err := exec.LookPath(argv[0])
		if err != nil {
			return "", p.Unfit("%s cannot be run (%v)", argv[0], errors.Unwrap(err))
		}
		return path, nil
	}
	return p.Find(e.config.Path, e.settings.Cache)
}
