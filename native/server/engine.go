// Package server starts servers with OpenAI's HTTP API and measures them: vLLM, SGLang, and any other by a command.
//
// Each load starts the server on a free port of the loopback interface, with a temporary folder of its own, and waits
// until it answers. Its processes are sampled as a tree from their first moment. Package openai talks to it, so times
// and counts are those of a running server. Unload ends all processes. Sizes in its start-up log are recorded as what
// the engine reports (package startup).
//
// What a server does by itself is not changed, with three exceptions, so that figures compare: it computes in f32
// unless
// told otherwise, its prompt cache finds nothing, and on a CPU vLLM's KV cache has the size that the requests need.
// vLLM would take a share of all memory.
package server

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/openai"
	"llmparity/native/place"
	"llmparity/native/program"
)

const noProgram = fault.NoProgram

// Engine is a server that llmparity starts.
type Engine struct {
	config   Config
	settings engine.Settings
	known    program.Known[string] // the program's hash
	in       *place.Place          // where it runs; nil: on this machine
}

// New makes the engine without searching for anything.
func New(c Config, s engine.Settings) *Engine {
	c.kind = cmp.Or(c.kind, AnyName)
	in := place.In(s.Container)
	return &Engine{config: c, settings: s, in: in, known: program.Known[string]{In: in}}
}

// Name returns the engine's name.
func (e *Engine) Name() string { return e.config.kind }

func (e *Engine) api() string { return cmp.Or(e.config.API, openai.Completions) }

// Caps returns what its servers can do. Those of an unknown command can do little.
func (e *Engine) Caps() engine.Caps {
	t := e.template()
	if t == nil {
		_, argv := split(e.argvOf(values{}))
		t = cmp.Or(guessed(argv), &Template{})
	}
	latest := "99" // of a program that does not tell its version
	if path, err := e.find(); err == nil {
		latest = cmp.Or(version(e.in, path, t.Name), latest)
	}
	c := openai.Abilities(t.Title, latest, e.api())
	c.Isolation = record.OfLaunch
	return c
}

// argvOf returns the words of the command.
func (e *Engine) argvOf(v values) []string {
	command := e.config.Command
	if t := e.template(); t != nil {
		command = t.Command
	}
	all, _ := words(command, v) // validated by CheckPlan
	args, _ := program.Words(e.config.Args)
	return append(all, args...)
}

// argv returns the command without variables before it.
func (e *Engine) argv(v values) []string {
	_, argv := split(e.argvOf(v))
	if len(argv) == 0 {
		return []string{""}
	}
	return argv
}

// Check finds the program, and looks whether it can run the model.
func (e *Engine) Check(_ context.Context, m models.Model) error {
	if _, err := e.find(); err != nil {
		return err
	}
	if m.Format == record.Served {
		return nil // the server downloads it, or refuses
	}
	if _, err := os.Stat(m.Path); err != nil {
		return engine.SetUp(fault.Wrap(fault.BadModel, err, "", "model %s cannot be read", cmp.Or(m.Name, m.Path)))
	}
	switch {
	case m.Format == models.HuggingFace:
		return tokenized(m.Path)
	case e.converts(m):
		if err := program.CheckGGUF(e.Name(), m); err != nil {
			return err
		}
		if m.Unsupported != nil {
			return engine.SetUp(fault.Wrap(fault.UnknownArch, m.Unsupported, "name the model's Hugging Face folder",
				"the GGUF cannot become a Hugging Face folder"))
		}
	}
	return nil
}

// tokenizers are the files of which a Hugging Face folder has at least one.
var tokenizers = []string{"tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json", "vocab.txt", "*.tiktoken"}

// tokenized refuses a folder without a tokenizer, which a server would notice only after a long start.
func tokenized(dir string) error {
	for _, name := range tokenizers {
		if found, _ := filepath.Glob(filepath.Join(dir, name)); len(found) > 0 {
			return nil
		}
	}
	return engine.SetUp(fault.New(fault.BadModel, "get it again with its tokenizer", "%s has no tokenizer (%s)", dir,
		strings.Join(tokenizers[:2], ", ")))
}

// Open finds the program. The server is started by Load, because it is started with a model.
func (e *Engine) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	path, err := e.find()
	if err != nil {
		return nil, err
	}
	s := &session{engine: e, probe: p, path: path, own: launch.Held[process]{Name: e.Name(), Closed: errClosed,
		Turns: engine.Turns{Most: e.Caps().Requests}}}
	if s.sha256, err = e.known.Of(path, func(sum string) (string, error) { return sum, nil }); err != nil {
		return nil, err
	}
	s.onCPU = onCPU(ctx, e.in, path)
	return s, nil
}

// Room returns how much memory its container leaves.
func (e *Engine) Room(ctx context.Context) (free int64, how string, ok bool) { return e.in.Room(ctx) }

// Settings returns what is known of the settings before the start.
func (e *Engine) Settings(m models.Model) map[string]string {
	return e.policy(m, onCPU(context.Background(), e.in, e.path()))
}

func (e *Engine) path() string {
	path, _ := e.find() // Check reports errors
	return path
}

// policy returns the settings that affect memory and figures.
func (e *Engine) policy(m models.Model, cpu bool) map[string]string {
	s := e.settings
	p := map[string]string{"prompt_cache": "the server's"}
	if m.Context > 0 {
		p["context"] = strconv.Itoa(m.Context)
	}
	e.in.Describe(p)
	if n := max(1, s.Slots); n > 1 {
		p["parallel"] = strconv.Itoa(n)
	}
	t := e.template()
	if t == nil || !slices.Contains(t.Formats, models.HuggingFace) { // it is told no dtype
		return p
	}
	p["weights_dtype"] = cmp.Or(s.Quantization, computes(s.DType))
	p["kv_dtype"] = cmp.Or(s.KVDType, computes(s.DType))
	p["device"] = "gpu"
	if cpu {
		p["device"], p["threads"] = "cpu", strconv.Itoa(max(1, s.Threads))
	}
	if n, each := e.cacheBytes(m, cpu), e.bytesPerToken(m); n > 0 && each > 0 && cpu {
		p["kv_cells"] = strconv.FormatInt(n/(each*cpuBlock)*cpuBlock, 10)
	}
	if s.TensorParallel > 1 {
		p["tensor_parallel"] = strconv.Itoa(s.TensorParallel)
	}
	if s.GPUMemory > 0 && !cpu {
		p["gpu_memory_utilization"] = strconv.FormatFloat(s.GPUMemory, 'g', -1, 64)
	}
	return p
}

// cpuBlock is the number of tokens in a block of vLLM's KV cache on a CPU.
const cpuBlock = 128

// cacheBytes is the size of vLLM's KV cache; 0: the server chooses. On a CPU it has room for the contexts of all
// requests at a time, in whole blocks, each with one more: vLLM keeps one empty.
func (e *Engine) cacheBytes(m models.Model, cpu bool) int64 {
	if e.config.CacheMiB > 0 {
		return int64(e.config.CacheMiB) * record.MiB
	}
	if t := e.template(); t == nil || t.Name != VLLMName || !cpu || m.Context == 0 {
		return 0
	}
	blocks := int64(max(1, e.settings.Slots)) * int64((m.Context+cpuBlock-1)/cpuBlock+1)
	return blocks * cpuBlock * e.bytesPerToken(m)
}

func (e *Engine) bytesPerToken(m models.Model) int64 {
	return int64(openai.BytesPerToken(m.Path, cmp.Or(e.settings.KVDType, computes(e.settings.DType))))
}

// values of the placeholders at a start.
func (e *Engine) values(m models.Model, port int, cpu bool) values {
	v := known(valuesOf(e.settings, m))
	v["port"] = strconv.Itoa(port)
	if n := e.cacheBytes(m, cpu); n > 0 {
		v["kv_cache_bytes"] = strconv.FormatInt(n, 10)
	}
	if cpu { // a thread that is bound to a core waits for whatever else runs there
		v["cpu_threads"], v["cpu_binding"] = v["threads"], "nobind"
	}
	return v
}

// onCPU reports whether a server computes on the CPU: its Python has a build for it, or there is no GPU.
func onCPU(ctx context.Context, in *place.Place, path string) bool {
	if strings.Contains(version(in, path, VLLMName), "+cpu") {
		return true
	}
	m := gpu.Open(ctx, gpu.Options{})
	defer m.Close()
	return len(m.GPUs) == 0
}

// distribution matches the folder that names a Python package with its version.
var distribution = regexp.MustCompile(`^[\w.]+-(.+)\.dist-info$`)

// version returns the version of a Python package in the environment of a program; empty: unknown. Asking the program
// would take ten seconds.
func version(in *place.Place, path, name string) string {
	lib := filepath.Dir(path) + "/../lib" // not cleaned: the folder may be a link
	for _, python := range in.Names(lib) {
		if !strings.HasPrefix(python, "python3") {
			continue
		}
		for _, dir := range in.Names(lib + "/" + python + "/site-packages") {
			if m := distribution.FindStringSubmatch(dir); m != nil && strings.HasPrefix(dir, name+"-") {
				return m[1]
			}
		}
	}
	return ""
}

// info describes a start.
func (s *session) info(m models.Model, args []string) record.EngineInfo {
	i := record.EngineInfo{Name: s.engine.Name(), Path: s.path, SHA256: s.sha256, Args: args,
		Parts: map[string]string{}, Policy: s.engine.policy(m, s.onCPU), Weights: s.weights}
	if t := s.engine.template(); t != nil && t.Name == VLLMName {
		i.Computes = "torch"
	}
	if lib := version(s.engine.in, s.path, "torch"); lib != "" {
		i.Parts["torch"] = lib
	}
	return i
}
