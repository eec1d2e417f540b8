//go:build slow && linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/host/cache"
	"llmparity/internal/host/container/containertest"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
	"llmparity/native/huggingface"
	"llmparity/native/server"
)

// contained starts a container that has this machine's libraries, the set-up's builds, and a folder as /own.
func contained(t *testing.T, own string, flags ...string) {
	t.Helper()
	containertest.Setup(t)
	flags = append(containertest.Libraries("-v", cache.Dir(os.Getenv)+":"+cache.Dir(os.Getenv)+":ro",
		"-v", own+":/own:ro"), flags...)
	containertest.Run(t, "box", "while :; do sleep 1; done", flags...)
}

// generatedIDs are the different token ids of each cell's requests, by engine and setting.
func generatedIDs(r *record.Run) map[string][]string {
	out := map[string][]string{}
	for _, a := range r.Attempts {
		c := r.CellByID(a.Cell)
		for _, q := range a.Measured() {
			var ids []int
			for _, token := range q.Tokens {
				ids = append(ids, token.ID)
			}
			key := c.Engine + " " + c.Settings["container_name"]
			if said := fmt.Sprint(ids); !slices.Contains(out[key], said) {
				out[key] = append(out[key], said)
			}
		}
	}
	return out
}

// In a container, a server and a program that speaks the protocol generate what llama.cpp generates outside. The cells
// are distinguished and compared, and the container and its limits are recorded.
func TestEnginesInContainer(t *testing.T) {
	racedTest(t)
	own := filepath.Dir(exampleEngine(t))
	model := filepath.Join(own, "mine.gguf")
	check(t, tiny.WriteFile(model))
	contained(t, own, "-m", "256m", "--cpus", "1.5")
	cmd := program(t, "run", "plan.yaml")
	put(t, cmd.Dir, "plan.yaml", `models:
  - {model: `+model+`, container_name: box, engines: [llamacpp, 'exec:mine=/own/engine', server]}
  - {model: `+model+`, engines: [llamacpp]}
server: {template: llama-server}
prompts: [the quick]
max_tokens: 12
repetitions: 1
`)
	well(t, cmd)
	r := opened(t, filepath.Join(cmd.Dir, "results", "latest"))
	ids := generatedIDs(r)
	want := ids["llamacpp none"]
	if len(want) != 1 || strings.Count(want[0], " ") != 11 {
		t.Fatalf("outside: %v of %v", want, ids)
	}
	for _, inside := range []string{"llamacpp box", "exec:mine box"} {
		if !slices.Equal(ids[inside], want) {
			t.Errorf("%s: %v, want %v", inside, ids[inside], want)
		}
	}
	for _, a := range r.Attempts {
		c, policy := r.CellByID(a.Cell), lastEngine(a).Policy
		image, _, _ := strings.Cut(policy["container"], " (")
		said := image + ", " + policy["container_memory"] + ", " + policy["container_cores"]
		want := "podman, image localhost/llmparity-test:latest, 256.0 MiB, 1.5"
		if c.Settings["container_name"] == "none" {
			want = ", , "
		}
		if said != want || len(a.Samples) == 0 {
			t.Errorf("%s: %q, want %q; %d samples", c.Engine, said, want, len(a.Samples))
		}
	}
	mentions(t, details(t, cmd.Dir), "identical: 12 of 12 token ids")
	said := containertest.Podman(t, "top", "box", "comm")
	if strings.Contains(said, "llama") || strings.Contains(said, "engine") {
		t.Errorf("left in the container:\n%s", said)
	}
}

// withTorch starts a container that has torch, transformers and vLLM on its PATH.
func withTorch(t *testing.T) {
	t.Helper()
	programs := filepath.Join(cache.Dir(os.Getenv), "huggingface", "current", "bin")
	if _, err := os.Stat(filepath.Join(programs, "vllm")); err != nil {
		t.Skip("scripts/setup vllm: ", err)
	}
	python, err := filepath.EvalSymlinks(filepath.Join(programs, "python"))
	check(t, err)
	flags := []string{"--shm-size", "256m", "-e", "PATH=" + programs + ":/bin:/usr/bin"}
	if prefix := filepath.Dir(filepath.Dir(python)); prefix != "/usr" { // which the container has
		flags = append(flags, "-v", prefix+":"+prefix+":ro")
	}
	contained(t, t.TempDir(), flags...)
}

// agreesWithOutside runs an entry of a plan in the container, and llama.cpp outside; they generate the same.
func agreesWithOutside(t *testing.T, engine, entry string, args ...string) {
	t.Helper()
	cmd := program(t, append([]string{"run", "plan.yaml", "--repetitions", "1", "--timeout", "10m"}, args...)...)
	put(t, cmd.Dir, "plan.yaml", "models:\n  - {model_id: tiny, container_name: box, dtype: float32, "+entry+`}
  - {model_id: tiny, dtype: float32, engines: [llamacpp]}
prompts: [the quick]
max_tokens: 12
`)
	well(t, cmd)
	r := opened(t, filepath.Join(cmd.Dir, "results", "latest"))
	ids := generatedIDs(r)
	if want := ids["llamacpp none"]; len(want) != 1 || !slices.Equal(ids[engine+" box"], want) {
		t.Errorf("%v", ids)
	}
	for _, a := range r.Attempts {
		if len(a.Samples) == 0 {
			t.Errorf("launch %d of %s has no samples", a.ID, r.CellByID(a.Cell).Engine)
		}
	}
	said := containertest.Podman(t, "top", "box", "args")
	if strings.Contains(said, "python") || strings.Contains(said, "VLLM") {
		t.Errorf("left in the container:\n%s", said)
	}
}

// A plan in the form of another tool that names a container, and no engine, means vLLM in that container.
func TestVLLMInContainer(t *testing.T) {
	lightTest(t)
	withTorch(t)
	agreesWithOutside(t, server.VLLMName, "tensor_parallel_size: 1, max_model_len: 512", "--vllm-args=--enforce-eager")
}

// Our program runs in the container's Python.
func TestHuggingFaceInContainer(t *testing.T) {
	lightTest(t)
	withTorch(t)
	agreesWithOutside(t, huggingface.Name, "engines: [huggingface]")
}

// A model is found by its path in the container, also on no mount.
func TestModelInContainer(t *testing.T) {
	racedTest(t)
	own := t.TempDir()
	check(t, tiny.WriteFile(filepath.Join(own, "mine.gguf")))
	contained(t, own)
	containertest.Podman(t, "exec", "box", "cp", "/own/mine.gguf", "/tmp/copied.gguf")
	for _, path := range []string{"/own/mine.gguf", "/tmp/copied.gguf"} {
		cmd := program(t, "run", "-q", "--engines", "llamacpp", "--container", "box", "--model", path,
			"--max-tokens", "4", "--repetitions", "1")
		well(t, cmd)
		r := opened(t, filepath.Join(cmd.Dir, "results", "latest"))
		if m := r.Cells[0].Model; m.File != path || m.SHA256 != tiny.SHA256 {
			t.Errorf("%s: recorded as %+v", path, m)
		}
	}
	refuses(t, program(t, "run", "-q", "--engines", "llamacpp", "--container", "box", "--model", "/tmp/no.gguf"),
		fault.BadModel, "model /tmp/no.gguf is not on this machine, and not in container box")
}

// The limit of a container is heeded: by the prediction, which refuses a cell, and by the name of what the kernel does
// if the cell is launched all the same.
func TestContainerLimit(t *testing.T) {
	racedTest(t)
	contained(t, t.TempDir(), "-m", "256m", "--memory-swap", "256m")
	cmd := program(t, "run", "-q", "--engines", "llamacpp", "--container", "box", "--concurrency", "255",
		"--max-tokens", "2", "--repetitions", "1")
	refuses(t, cmd, fault.WontFit, "memory limit of container box, 256.0 MiB, minus its use")
	launched := resumed(cmd, append(cmd.Args[1:], "--no-check-oom")...)
	refuses(t, launched, fault.Run, "signal: killed at the memory limit of 256.0 MiB of container box")
	r := opened(t, filepath.Join(cmd.Dir, "results", "latest"))
	for _, a := range r.Attempts {
		if a.Class != record.OOM {
			t.Errorf("launch %d is %q", a.ID, a.Class)
		}
	}
}

// A server that runs in a container without a network of this machine is measured there.
func TestServerInContainer(t *testing.T) {
	racedTest(t)
	own := t.TempDir()
	check(t, tiny.WriteFile(filepath.Join(own, "mine.gguf")))
	containertest.Setup(t)
	builds := cache.Dir(os.Getenv) + "/llamacpp"
	containertest.Run(t, "serving",
		"exec /builds/current/bin/llama-server -m /own/mine.gguf --port 8080 -c 512 -t 1 --metrics", containertest.Libraries("-v", builds+":/builds:ro", "-v", own+":/own:ro", "-m", "512m")...)
	args := []string{"run", "-q", "--engines", "openai", "--openai-url", "http://127.0.0.1:8080",
		"--container", "serving", "--model", filepath.Join(own, "mine.gguf"), "--max-tokens", "8", "--repetitions", "1"}
	cmd := program(t, args...)
	untilReady(t, cmd, args)
	r := opened(t, filepath.Join(cmd.Dir, "results", "latest"))
	for _, w := range r.Warnings {
		if w.Code == "weights-unverified" || w.Code == "server-not-sampled" {
			t.Errorf("%+v", w)
		}
	}
	p := executed(t, filepath.Join(cmd.Dir, "results", "latest"))["openai"].Policy
	if p["container_memory"] != "512.0 MiB" {
		t.Errorf("%v", p)
	}
}

// A plan of another tool with container_name and without engines is vLLM's in that container, if that has it.
func TestContainerNameMeansVLLM(t *testing.T) {
	racedTest(t)
	own := t.TempDir()
	put(t, own, "vllm", "#!/bin/sh\n")
	contained(t, own, "-e", "PATH=/bin:/usr/bin:/own")
	cmd := program(t, "run", "plan.yaml", "--dry-run")
	put(t, cmd.Dir, "plan.yaml", "models:\n  - {model_id: tiny, container_name: box, input_lengths: [8], output_lengths: [4]}\n")
	stdout, _ := well(t, cmd, "vllm", "1 cell", "Missing here: nothing")
	if strings.Contains(stdout, "can't run here") {
		t.Error(stdout)
	}
}

// untilReady repeats a command until the server that it measures has started.
func untilReady(t *testing.T, cmd *exec.Cmd, args []string) {
	t.Helper()
	for n := 0; ; n++ {
		stdout, stderr, code := output(t, cmd)
		if code == 0 {
			return
		}
		if time.Sleep(200 * time.Millisecond); n > 50 {
			t.Fatalf("%s%s", stdout, stderr)
		}
		cmd = resumed(cmd, args...)
	}
}
