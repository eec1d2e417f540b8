package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/server"
)

func TestMain(m *testing.M) { childtest.Main(m) }

// settings are those of tests.
func settings() engine.Settings {
	return engine.Settings{Cache: cache.Dir(os.Getenv), Threads: 1, Slots: 2}
}

// of makes an engine of a kind.
func of(t testing.TB, k *engine.Kind, s engine.Settings, set func(*server.Config)) *server.Engine {
	t.Helper()
	c := k.Config().(*server.Config)
	set(c)
	check.Err(t, c.Check())
	check.Err(t, c.CheckPlan(s))
	return server.New(*c, s)
}

// precise are arguments with which llama-server computes as the reference does.
const precise = "-ngl 0 -dev none -ctk f32 -ctv f32 -fa off -fit off --no-warmup --no-webui --offline"

// llama makes an engine of the template for llama-server.
func llama(t testing.TB, s engine.Settings) *server.Engine {
	return of(t, server.Any, s, func(c *server.Config) { c.Template, c.Args = "llama-server", precise })
}

// command makes an engine of a command. Words that begin with @ are scripts.
func command(t testing.TB, text string) *server.Engine {
	t.Helper()
	return of(t, server.Any, settings(), func(c *server.Config) { c.Command = text })
}

// script writes a shell script and returns its path.
func script(t testing.TB, text string) string {
	t.Helper()
	return check.Script(t, text, t.TempDir(), "start")
}

// loads loads the tiny model and returns the error.
func loads(t testing.TB, e engine.Engine) error {
	t.Helper()
	s, p := enginetest.Open(t, e)
	err := s.Load(t.Context(), enginetest.TinyModel(t))
	if n := len(p.Attached()); err != nil && n != 0 {
		t.Errorf("%d sources after a failed load", n)
	}
	return err
}

// TestConformance runs the suite with a server that is started by a template.
func TestConformance(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	c.New = func(t *testing.T) engine.Engine { return llama(t, settings()) }
	enginetest.Run(t, c)
}

// A command may set variables, and start a shell that starts the server. All its processes are sampled, its temporary
// folder is its own, and nothing is left of either.
func TestCommandWithChildren(t *testing.T) {
	path := script(t, `echo "$GREETING" >"$TMPDIR/left"; echo "$TMPDIR"
sleep 1000 &
llama-server -m "$1" --host 127.0.0.1 --port "$2" -np 2 -c 2048 `+precise)
	t.Setenv("PATH", filepath.Join(cache.Dir(os.Getenv), "llamacpp/current/bin")+":"+os.Getenv("PATH"))
	s, p := enginetest.Open(t, command(t, "GREETING='a b' "+path+" {model} {port}"))
	enginetest.Load(t, s, enginetest.TinyModel(t))
	output, _ := p.Logged(server.AnyName)
	dir, _, _ := strings.Cut(output, "\n")
	if text, err := os.ReadFile(filepath.Join(dir, "left")); err != nil || string(text) != "a b\n" {
		t.Errorf("%q in the temporary folder: %v", text, err)
	}
	pids := p.PIDs("server")
	if len(pids) < 3 {
		t.Errorf("%d processes are sampled, want the shell, sleep and llama-server", len(pids))
	}
	g, err := enginetest.Generate(t.Context(), s, engine.Request{Prompt: "Once", MaxTokens: 8})
	if err != nil || g.Usage.Generated != 8 {
		t.Errorf("%+v: %v", g.Usage, err)
	}
	info := p.Engine()
	if info.Name != server.AnyName || info.Parts["server"] != "llama-server" || info.Path != path ||
		!slices.Contains(info.Args, "GREETING=a b") {
		t.Errorf("%+v", info)
	}
	if w := p.Warnings(); slices.ContainsFunc(w, func(w record.Warning) bool {
		return w.Code == "already-running" || w.Code == "weights-unverified"
	}) {
		t.Errorf("warnings for somebody else's server: %v", w)
	}
	check.Err(t, s.Unload(t.Context()))
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the temporary folder is left: %v", err)
	}
	if left := child.Tagged(os.Getpid()); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// What keeps a server from starting is one line of the right class.
func TestStartsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		e     func() engine.Engine
		kind  fault.Kind
		class record.Class
		words []string
	}{
		"no program": {func() engine.Engine { return command(t, "/nowhere/serve {model} {port}") }, fault.NoProgram,
			record.SetUp, []string{"/nowhere/serve cannot be run"}},
		"wrong argument": {func() engine.Engine {
			return of(t, server.Any, settings(), func(c *server.Config) {
				c.Template, c.Args = "llama-server",
					"--no-such-flag"
			})
		}, fault.ServerUnreachable, record.SetUp, []string{"server ended while it loaded tiny-llama-2x128 (exit status 1)", "invalid argument: --no-such-flag"}},
		"Python's exception": {func() engine.Engine {
			return command(t, script(t, `echo 'Traceback (most recent call last):
(EngineCore pid=7) ERROR 01-01 [core.py:1] ValueError: Model architectures are not supported
RuntimeError: Engine core initialization failed. See root cause above.'; exit 1`)+" {model} {port}")
		}, fault.ServerUnreachable, record.SetUp, []string{"ValueError: Model architectures are not supported; correct the command"}},
		"out of memory": {func() engine.Engine {
			return command(t, script(t, `echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate'; exit 1`)+" {model} {port}")
		}, fault.Run, record.OOM, []string{"ran out of memory", "CUDA out of memory"}},
		"killed": {func() engine.Engine { return command(t, script(t, "kill -9 $$")+" {model} {port}") }, fault.Run,
			record.Crash, []string{"was killed while it loaded tiny-llama-2x128 (signal: killed)"}},
		"killed worker": {func() engine.Engine {
			return command(t, script(t, `echo 'RuntimeError: queue is closed'; echo 'ERROR Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down'; exit 1`)+" {model} {port}")
		}, fault.Run, record.Crash, []string{"died unexpectedly"}},
		"killed engine": {func() engine.Engine {
			return command(t, script(t, `echo "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': -9}"; exit 1`)+" {model} {port}")
		}, fault.Run, record.Crash, []string{"was killed while it loaded", "Failed core proc(s): {'EngineCore': -9}"}},
		"dead engine": {func() engine.Engine {
			return command(t, script(t, `echo '(APIServer pid=664) ERROR 11-30 18:15:32 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.'; echo 'INFO:     Finished server process [664]'; exit 0`)+" {model} {port}")
		}, fault.Run, record.Crash, []string{"lost its engine while it loaded", "EngineDeadError: EngineCore encountered an issue"}},
		"killed worker without its exit code": {func() engine.Engine {
			return command(t, script(t, `echo '(EngineCore pid=2110) ERROR 11-30 14:38:22 [multiproc_executor.py:315] Worker proc VllmWorker-0 died unexpectedly (exit code: None), shutting down executor.'; echo 'RuntimeError: cancelled'; exit 1`)+" {model} {port}")
		}, fault.Run, record.Crash, []string{"Worker proc VllmWorker-0 died unexpectedly"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := c.e()
			err := e.Check(t.Context(), enginetest.TinyModel(t))
			if err == nil {
				err = loads(t, e)
			}
			enginetest.OneLine(t, err, c.kind, c.class, c.words...)
		})
	}
}

// If the port was taken meanwhile, the server is started on another.
func TestPortTaken(t *testing.T) {
	t.Setenv("PATH", filepath.Join(cache.Dir(os.Getenv), "llamacpp/current/bin")+":"+os.Getenv("PATH"))
	dir := t.TempDir()
	e := command(t, script(t, `echo "$2" >>`+dir+`/ports
[ "$(wc -l <`+dir+`/ports)" -gt 1 ] || { echo "[Errno 98] error while attempting to bind on address: address already in use"; exit 1; }
exec llama-server -m "$1" --host 127.0.0.1 --port "$2" -c 512 `+precise)+" {model} {port}")
	check.Err(t, loads(t, e))
	if ports := strings.Fields(string(check.Read(t, dir+"/ports"))); len(ports) != 2 || ports[0] == ports[1] {
		t.Errorf("ports %v, want two", ports)
	}
}

// A server that ends during its work has crashed.
func TestKilledAtWork(t *testing.T) {
	s, p := enginetest.Open(t, llama(t, settings()))
	enginetest.Load(t, s, enginetest.TinyModel(t))
	var once bool
	_, err := s.Generate(t.Context(), engine.Request{Prompt: "Once", MaxTokens: 500, IgnoreEOS: true},
		func(record.Token) {
			if !once {
				once = true
				check.Err(t, check.Kill(p.PIDs("server")[0]))
			}
		})
	enginetest.OneLine(t, err, fault.Run, record.Crash, "server crashed (signal: killed)")
}

func TestCommands(t *testing.T) {
	wrong := func(text, words string) {
		t.Helper()
		c := server.Any.Config().(*server.Config)
		c.Command = text
		if err := c.CheckPlan(settings()); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", text, err, words)
		}
	}
	wrong("", "command: missing; set command, or template: vllm, sglang, llama-server")
	wrong("serve {model}", "command: lacks {port}")
	wrong("serve {port}", "command: lacks {model}")
	wrong("serve {model} {port} {modle}", "unknown placeholder {modle}")
	wrong("serve {model} {port} 'a", "unclosed quote")
	wrong("A={model} B={port}", "names no program")
	c := server.VLLM.Config().(*server.Config)
	c.Args = "'a"
	if err := c.CheckPlan(settings()); err == nil || !strings.Contains(err.Error(), "args: unclosed quote") {
		t.Errorf("%v", err)
	}
}

// folder writes a Hugging Face folder without weights.
func folder(t testing.TB, files ...string) models.Model {
	t.Helper()
	dir := t.TempDir()
	check.Err(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type": "llama", "hidden_size": 128, "num_hidden_layers": 2,
"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 256, "vocab_size": 512,
"max_position_embeddings": 1024}`), 0o600))
	for _, name := range files {
		check.Err(t, os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600))
	}
	return models.Model{Path: dir, Model: record.Model{Name: "m", Format: models.HuggingFace, Context: 200}}
}

// environment makes a Python environment with a program that records how it was started, and ends.
func environment(t testing.TB, version string) (program, said string) {
	t.Helper()
	dir := t.TempDir()
	check.Err(t, os.MkdirAll(filepath.Join(dir, "lib/python3.11/site-packages/vllm-"+version+".dist-info"), 0o700))
	said = filepath.Join(dir, "said")
	return check.Script(t, `echo "$@" >`+said+`; env >>`+said+`; echo "error: this is a stand-in"; exit 1`, dir, "bin", "vllm"), said
}

// Settings of a plan become arguments. On a CPU the KV cache has room for all requests at a time: two of 200 tokens
// take two blocks of 128 each, and each has one more; a token takes 1,024 bytes in f32.
func TestSettingsBecomeArguments(t *testing.T) {
	m := folder(t, "tokenizer.json")
	program, said := environment(t, "0.32.0+cpu")
	started := func(s engine.Settings) string {
		t.Helper()
		e := of(t, server.VLLM, s, func(c *server.Config) { c.Path, c.Args = program, "--enforce-eager" })
		session, _ := enginetest.Open(t, e)
		if err := session.Load(t.Context(), m); err == nil {
			t.Fatal("a stand-in loads a model")
		}
		return string(check.Read(t, said))
	}
	t.Setenv("VLLM_CPU_KVCACHE_SPACE", "40")
	plain := settings()
	got := started(plain)
	check.Has(t, got, "serve "+m.Path+" --host 127.0.0.1 --port ", "--served-model-name m --dtype float32 --max-model-len 200 "+
		"--kv-cache-memory-bytes 786432 --enforce-eager\n", "\nHF_HUB_OFFLINE=1\n", "\nOMP_NUM_THREADS=1\n", "\nVLLM_NO_USAGE_STATS=1\n")
	if strings.Contains(got, "VLLM_CPU_KVCACHE_SPACE") {
		t.Error("a variable that overrides the size of the KV cache is passed on")
	}
	plain.DType, plain.KVDType, plain.Deployment = "bf16", "fp8", engine.Deployment{TensorParallel: 4,
		Quantization: "awq", GPUMemory: 0.8}
	check.Has(t, started(plain), "--dtype bfloat16 --max-model-len 200 --tensor-parallel-size 4 --quantization awq --kv-cache-dtype fp8 "+
		"--gpu-memory-utilization 0.8 --kv-cache-memory-bytes 196608 ")
	plain.DType, plain.KVDType = "f16", "f16"
	if got := started(plain); strings.Contains(got, "--kv-cache-dtype") {
		t.Errorf("the dtype of the activations is the default of the KV cache: %s", got)
	}
}

// The user's size of the KV cache is passed on, and predictions get whole blocks of it.
func TestSizeOfKVCache(t *testing.T) {
	m := folder(t, "tokenizer.json")
	program, said := environment(t, "0.32.0+cpu")
	e := of(t, server.VLLM, settings(), func(c *server.Config) { c.Path, c.CacheMiB = program, 1 })
	if got := e.Settings(m); got["kv_cells"] != "1024" || got["device"] != "cpu" || got["parallel"] != "2" ||
		got["context"] != "200" {
		t.Errorf("%v", got)
	}
	s, _ := enginetest.Open(t, e)
	if err := s.Load(t.Context(), m); err == nil {
		t.Fatal("a stand-in loads a model")
	}
	check.Has(t, string(check.Read(t, said)), "--kv-cache-memory-bytes 1048576\n")
}

// A chat is a message in the server's template, so its prompt is longer.
func TestChat(t *testing.T) {
	prompted := map[string]int{}
	for _, api := range []string{"completions", "chat"} {
		s, _ := enginetest.Open(t, of(t, server.Any, settings(), func(c *server.Config) {
			c.Template, c.Args, c.API = "llama-server", precise, api
		}))
		enginetest.Load(t, s, enginetest.TinyModel(t))
		g, err := enginetest.Generate(t.Context(), s, engine.Request{Prompt: "Once", MaxTokens: 2})
		check.Err(t, err)
		prompted[api] = g.Prompted()
	}
	if prompted["chat"] <= prompted["completions"] {
		t.Errorf("%v prompt tokens", prompted)
	}
}

// A model without a tokenizer is refused before a long start.
func TestFolderWithoutTokenizer(t *testing.T) {
	program, _ := environment(t, "0.32.0+cpu")
	e := of(t, server.VLLM, settings(), func(c *server.Config) { c.Path = program })
	enginetest.OneLine(t, e.Check(t.Context(), folder(t)), fault.BadModel, record.SetUp,
		"has no tokenizer (tokenizer.json")
	check.Err(t, e.Check(t.Context(), folder(t, "tokenizer.model")))
}

// vLLM returns ids and scores by its version, which is known before it runs.
func TestCapsOfVersions(t *testing.T) {
	for version, ids := range map[string]bool{"0.32.0+cpu": true, "0.10.2": true, "0.10.1": false, "0.9.2": false} {
		program, _ := environment(t, version)
		caps := of(t, server.VLLM, settings(), func(c *server.Config) { c.Path = program }).Caps()
		if caps.TokenIDs != ids || caps.Scores != ids || caps.Exact != ids || !caps.IgnoreEOS || caps.Resident ||
			caps.Isolation != record.OfLaunch {
			t.Errorf("%s: %+v", version, caps)
		}
	}
	if c := command(t, "unheard-of {model} {port}").Caps(); c.TokenIDs || c.IgnoreEOS || !c.PromptCache {
		t.Errorf("an unknown server: %+v", c)
	}
}
