//go:build slow && linux

package llamacpp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/host/container/containertest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/place"
)

// boxed starts a container that has this machine's libraries, the builds of programs, and a model's folder.
func boxed(t *testing.T, m models.Model, flags ...string) {
	t.Helper()
	containertest.Setup(t)
	flags = append(containertest.Libraries("-v", cache.Dir(os.Getenv)+":/builds:ro",
		"-v", filepath.Dir(m.Path)+":/models:ro"), flags...)
	containertest.Run(t, "box", "while :; do sleep 1; done", flags...)
}

func inBox(name string) *Engine { return New(Config{Cache: cache.Dir(os.Getenv), in: place.In(name)}) }

// In a container, llama-server passes the suite that it passes outside, with the same ids; the container stays.
func TestConformanceInContainer(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	boxed(t, c.Model, "-m", "512m", "--cpus", "1.5")
	c.New = func(*testing.T) engine.Engine { return inBox("box") }
	enginetest.Run(t, c)
	if said := containertest.Podman(t, "top", "box", "comm"); strings.Contains(said, "llama") {
		t.Errorf("left in the container:\n%s", said)
	}
}

// What carries the server into the container is not measured; the container and its limits are recorded.
func TestContainerIsRecorded(t *testing.T) {
	m := enginetest.TinyModel(t)
	boxed(t, m, "-m", "512m", "--cpus", "1.5")
	s, p := opened(t, inBox("box"))
	enginetest.Load(t, s, m)
	pids := p.PIDs("server")
	if len(pids) != 1 {
		t.Fatalf("processes %v are sampled", pids)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pids[0]))
	check.Err(t, err)
	if !strings.HasPrefix(string(line), "/builds/llamacpp/") || !strings.Contains(string(line), "\x00/models/") {
		t.Errorf("%q is sampled", line)
	}
	info := p.Engine()
	image := "podman, image localhost/" + containertest.Image + ":latest ("
	for name, want := range map[string]string{"container": image, "container_memory": "512.0 MiB",
		"container_cores": "1.5"} {
		if got := info.Policy[name]; !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if info.SHA256 == "" || info.Version == "" {
		t.Errorf("%+v", info)
	}
	if free, how, ok := inBox("box").Room(t.Context()); !ok || free > 512<<20 || free < 300<<20 {
		t.Errorf("%d bytes free (%s), %v", free, how, ok)
	}
}

// Twenty launches leave no process, no folder and no mount, in the container or outside.
func TestContainerLaunchesLeaveNothing(t *testing.T) {
	m := enginetest.TinyModel(t)
	boxed(t, m)
	state := func() []string {
		all, err := os.ReadFile("/proc/self/mounts")
		check.Err(t, err)
		mounts := slices.DeleteFunc(strings.Split(string(all), "\n"), func(line string) bool { // others have some
			return !strings.Contains(line, os.TempDir())
		})
		return []string{containertest.Podman(t, "ps", "-a", "--format", "{{.Names}}"),
			containertest.Podman(t, "container", "inspect", "--format", "{{.ExecIDs}}", "box"),
			containertest.Podman(t, "exec", "box", "busybox", "ls", "/tmp"), fmt.Sprint(mounts),
			fmt.Sprint(child.Tagged(os.Getpid()), child.Scratches(os.Getpid())),
			fmt.Sprint(strings.Count(containertest.Podman(t, "top", "box", "comm"), "sh"))}
	}
	before := state()
	e := inBox("box")
	for range 20 {
		s, err := e.Open(t.Context(), &enginetest.Probe{})
		check.Err(t, err)
		check.Err(t, s.Load(t.Context(), m))
		g, err := enginetest.Generate(t.Context(), s, engine.Request{Prompt: "the", MaxTokens: 2, IgnoreEOS: true})
		if err != nil || len(g.Tokens) != 2 {
			t.Fatalf("%v: %v", g, err)
		}
		check.Err(t, s.Unload(t.Context()))
		check.Err(t, s.Close())
	}
	if after := state(); !slices.Equal(before, after) {
		t.Errorf("before %q\nafter  %q", before, after)
	}
}

// A server that the kernel ends at the container's limit ran out of memory, and the limit is named.
func TestContainerOutOfMemory(t *testing.T) {
	m := enginetest.TinyModel(t)
	boxed(t, m, "-m", "64m", "--memory-swap", "64m")
	m.Context = 4096
	e := New(Config{Cache: cache.Dir(os.Getenv), Slots: 64, in: place.In("box")}) // a KV cache of 256 MiB
	s, _ := opened(t, e)
	err := s.Load(t.Context(), m)
	enginetest.OneLine(t, err, fault.Run, record.OOM, "at the memory limit of 64.0 MiB of container box")
}

// What is missing is named, with what to do.
func TestWhatContainersLack(t *testing.T) {
	m := enginetest.TinyModel(t)
	containertest.Setup(t)
	enginetest.OneLine(t, inBox("none").Check(t.Context(), m), fault.NoContainer, record.SetUp,
		"there is no container none; `podman ps` lists them, or drop container_name (--container)")
	containertest.Run(t, "bare", "while :; do busybox sleep 1; done", "-e", "PATH=/bin")
	enginetest.OneLine(t, inBox("bare").Check(t.Context(), m), fault.NoContainer, record.SetUp,
		"llama-server is not in container bare; use an image that has it")
	containertest.Run(t, "box", "while :; do sleep 1; done",
		containertest.Libraries("-v", cache.Dir(os.Getenv)+"/llamacpp:/builds:ro")...)
	e := New(Config{Path: "/builds/current/bin/llama-server", in: place.In("box")})
	check.Err(t, e.Check(t.Context(), m))
	s, _ := opened(t, e)
	enginetest.OneLine(t, s.Load(t.Context(), m), fault.NoContainer, record.SetUp,
		m.Path+" is not in container box; start the container with -v "+filepath.Dir(m.Path)+":"+filepath.Dir(m.Path)+
			":ro")
}
