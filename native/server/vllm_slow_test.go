//go:build slow

package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/native/logs"
	"llmparity/native/server"
)

// vllm makes a real vLLM that does not compile, with more arguments.
func vllm(t testing.TB, s engine.Settings, args ...string) *server.Engine {
	return of(t, server.VLLM, s, func(c *server.Config) { c.Args = strings.Join(append(args, "--enforce-eager"), " ") })
}

// alone are settings for one request at a time.
func alone() engine.Settings {
	s := settings()
	s.Slots = 1
	return s
}

// TestVLLM runs the suite with a real vLLM.
func TestVLLM(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	c.New = func(t *testing.T) engine.Engine { return vllm(t, settings()) }
	enginetest.Run(t, c)
}

// vLLM chooses the reference's tokens for all prompts, 64 each.
func TestVLLMAgreesWithReference(t *testing.T) {
	e := vllm(t, alone())
	cases := enginetest.Tiny(t, 64)
	check.Err(t, e.Prepare(t.Context(), cases[0].Model, func(string) {}))
	s, p := enginetest.Open(t, e)
	enginetest.Load(t, s, cases[0].Model)
	for _, c := range cases {
		g, err := enginetest.Generate(t.Context(), s, engine.Request{Prompt: c.Prompt, MaxTokens: 64, IgnoreEOS: true})
		check.Err(t, err)
		g.Caps = e.Caps()
		for _, f := range append(g.Faults(0), c.Faults(g)...) {
			t.Errorf("%q: %s", c.Prompt, f)
		}
	}
	// The size of the KV cache is that of vLLM's log: 1,024 tokens in blocks of 128, and one more, of 1,024 bytes each.
	const tokens = 1024 + 128
	log, _ := p.Logged(server.VLLMName)
	values := p.Values(t, logs.Method)
	if values["kv_reserved_bytes"] != tokens*1024 || values["kv_cells_count"] != tokens ||
		!strings.Contains(log, fmt.Sprintf("KV cache size: %d,%03d tokens", tokens/1000, tokens%1000)) {
		t.Errorf("the record has %v", values)
	}
	if info := p.Engine(); info.Parts["server_version"] != "0.32.0" || info.Policy["kv_dtype"] != "f32" ||
		info.Computes != "torch" ||
		len(p.Warned("weights-unverified"))+len(p.Warned("no-token-ids"))+len(p.Warned("cache-unknown")) != 0 {
		t.Errorf("%+v, warnings %v", info, p.Warnings())
	}
	for _, role := range []string{"server", "engine", "worker"} {
		if len(p.PIDs(role)) == 0 {
			t.Errorf("no process has the role %s", role)
		}
	}
	if d := p.Device(); d.Class != record.CPU {
		t.Errorf("%+v", d)
	}
	check.Err(t, s.Unload(t.Context()))
	if left := child.Tagged(os.Getpid()); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "vllm_dist_*")); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// A killed worker is a crash, in the middle of the load and at work.
func TestVLLMWorkerKilled(t *testing.T) {
	m := enginetest.TinyModel(t)
	e := vllm(t, alone())
	check.Err(t, e.Prepare(t.Context(), m, func(string) {}))
	s, p := enginetest.Open(t, e)
	enginetest.Load(t, s, m)
	killed := false
	_, err := s.Generate(t.Context(), engine.Request{Prompt: "Once", MaxTokens: 900, IgnoreEOS: true},
		func(record.Token) {
			if !killed {
				killed = true
				check.Err(t, check.Kill(p.PIDs("worker")[0]))
			}
		})
	enginetest.OneLine(t, err, fault.Run, record.Crash, "vllm crashed", "Worker proc VllmWorker-0 died unexpectedly (exit code: ")
	check.Err(t, s.Unload(t.Context()))

	s, p = enginetest.Open(t, e)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for n := 0; n < 3000; n++ {
			if pids := p.PIDs("engine"); len(pids) > 0 {
				_ = check.Kill(pids[0])
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	err = s.Load(t.Context(), m)
	<-over
	enginetest.OneLine(t, err, fault.Run, record.Crash, "vllm ")
	t.Log(err)
}

func TestVLLMRefusesArguments(t *testing.T) {
	m := enginetest.TinyModel(t)
	e := vllm(t, alone(), "--no-such-argument")
	check.Err(t, e.Prepare(t.Context(), m, func(string) {}))
	s, _ := enginetest.Open(t, e)
	enginetest.OneLine(t, s.Load(t.Context(), m), fault.ServerUnreachable, record.SetUp, "vllm ended while it loaded tiny-llama-2x128",
		"unrecognized arguments: --no-such-argument")
}

// A server in a cgroup with too little memory has run out of memory.
func TestVLLMOutOfMemory(t *testing.T) {
	group := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("llmparity-test-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("no cgroup can be made here: ", err)
	}
	defer os.Remove(group)
	check.Err(t, os.WriteFile(filepath.Join(group, "memory.limit_in_bytes"), []byte("900M"), 0o600))
	m := enginetest.TinyModel(t)
	real := vllm(t, alone())
	check.Err(t, real.Prepare(t.Context(), m, func(string) {}))
	wrapped := check.Script(t, "echo $$ >"+group+"/cgroup.procs\nexec "+program(t)+` "$@"`, t.TempDir(), "vllm")
	e := of(t, server.VLLM, alone(), func(c *server.Config) {
		c.Path, c.Args, c.CacheMiB = wrapped,
			"--enforce-eager", 2000
	})
	s, _ := enginetest.Open(t, e)
	err := s.Load(t.Context(), m)
	enginetest.OneLine(t, err, fault.Run, record.OOM, "vllm ran out of memory")
	check.Err(t, s.Close())
	for range 100 {
		if pids := check.Read(t, filepath.Join(group, "cgroup.procs")); len(pids) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("processes are left in the cgroup")
}

// program is the real vLLM.
func program(t testing.TB) string {
	t.Helper()
	path, err := server.VLLM.Program(server.VLLM.Config(), settings())
	check.Err(t, err)
	return path
}
