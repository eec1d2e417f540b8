package ollama

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
	"llmparity/native/launch"
	"llmparity/native/wire"
)

// Roles of Ollama's processes.
const (
	roleServer = "server"
	roleRunner = "runner"
)

func role(_ int, _ string, cmdline []string) string {
	switch {
	case len(cmdline) > 1 && cmdline[1] == "runner", len(cmdline) > 0 &&
		filepath.Base(cmdline[0]) == "ollama_llama_server":
		return roleRunner
	case len(cmdline) > 1 && cmdline[1] == "serve":
		return roleServer
	}
	return ""
}

// family is a server and its runners, which come and go. Runners of other models, which other clients of a running
// server use, are kept from being sampled. A runner whose command line names no file is sampled: it may be ours.
type family struct {
	tree   *proc.Tree // nil: not visible
	root   int        // the server's pid; 0: not visible
	shared bool       // the server was already running
	attach func(sample.Source) (detach func())

	mu   sync.Mutex
	ours []string // hashes of our model's files, once known
	kept []*kept
}

// kept is a source of a runner that seems to belong to another model.
type kept struct {
	src    sample.Source
	line   []string // command line
	detach func()   // nil: not sampled
}

// follow samples a server and its descendants.
func (f *family) follow(pid int, ours bool, p engine.Probe) (err error) {
	f.shared, f.attach = !ours, p.Attach
	if f.tree, err = proc.NewTree(pid, role, f.take, ours); err == nil {
		f.root = pid
	}
	return err
}

// take samples a source or holds it back.
func (f *family) take(src sample.Source) (detach func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := proc.CommandLine(src.Describe().PID)
	if !f.foreign(line) {
		return f.attach(src)
	}
	k := &kept{src: src, line: line}
	f.kept = append(f.kept, k)
	return func() { f.drop(k) }
}

// foreign reports whether a process is the runner of another model. The caller holds the lock.
func (f *family) foreign(line []string) bool {
	return f.shared && role(0, "", line) == roleRunner && strings.Contains(strings.Join(line, " "), "sha256-") &&
		!holds(line, f.ours)
}

// claim says which files our model consists of; its runner is sampled from now on.
func (f *family) claim(blobs []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ours = blobs
	for _, k := range f.kept {
		if k.detach == nil && !f.foreign(k.line) {
			k.detach = f.attach(k.src)
		}
	}
}

// drop forgets a source whose process has ended or is no longer followed.
func (f *family) drop(k *kept) {
	f.mu.Lock()
	f.kept = slices.DeleteFunc(f.kept, func(other *kept) bool { return other == k })
	detach := k.detach
	f.mu.Unlock()
	if detach != nil {
		detach()
	} else if c, ok := k.src.(io.Closer); ok {
		_ = c.Close() // it was never read
	}
}

func (f *family) look(ctx context.Context) {
	if f.tree != nil {
		f.tree.Look(ctx)
	}
}

func (f *family) close() {
	if f.tree != nil {
		f.tree.Close()
	}
}

// runner is what a runner's command line says; unknown fields are zero.
type runner struct {
	pid                        int
	context, parallel, threads int // context is the sum over all slots
	mmap, kv, flash            string
	args                       []string // without the model's path
}

// runner returns the youngest runner whose command line has one of the files. Others belong to models that someone
// else requested.
func (f *family) runner(blobs []string) (youngest runner) {
	if f.tree == nil {
		return youngest
	}
	for _, pid := range f.tree.PIDs() {
		if line := proc.CommandLine(pid); pid > youngest.pid && role(0, "", line) == roleRunner && holds(line, blobs) {
			youngest = parseRunner(pid, line)
		}
	}
	return youngest
}

// holds reports whether a runner's command line names one of the files.
func holds(line, blobs []string) bool {
	return slices.ContainsFunc(line, func(arg string) bool {
		return slices.ContainsFunc(blobs, func(sum string) bool { return strings.HasSuffix(arg, "sha256-"+sum) })
	})
}

func parseRunner(pid int, line []string) runner {
	r := runner{pid: pid}
	if len(line) < 2 || !slices.Contains(line, "--ctx-size") {
		return r // newer versions pass settings in another way
	}
	said := map[string]string{} // value by flag; a switch has an empty one
	for i := 2; i < len(line); i++ {
		flag, value := line[i], ""
		if i+1 < len(line) && !strings.HasPrefix(line[i+1], "--") {
			i++
			value = line[i]
		}
		said[flag] = value
		if flag != "--model" && flag != "--port" {
			r.args = append(r.args, strings.TrimSpace(flag+" "+value))
		}
	}
	r.context, _ = strconv.Atoi(said["--ctx-size"]) // 0: unknown
	r.parallel, _ = strconv.Atoi(said["--parallel"])
	r.threads, _ = strconv.Atoi(said["--threads"])
	r.kv = cmp.Or(said["--kv-cache-type"], "f16")
	r.mmap, r.flash = "on", "off"
	if _, ok := said["--no-mmap"]; ok {
		r.mmap = "off"
	}
	if _, ok := said["--flash-attn"]; ok {
		r.flash = "on"
	}
	return r
}

// see finds the processes of a running server.
func (s *session) see(u *url.URL) (path, sha256 string, seen bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	pid, program, err := launch.Listener(ctx, wire.HostPort(u), wire.IsHere(u.Hostname()))
	if err == nil && !strings.Contains(strings.ToLower(program), Name) {
		err = fmt.Errorf("process %d (%s) listens on its port and is not Ollama, but perhaps a proxy or container", pid,
			program)
	}
	if err == nil {
		err = s.family.follow(pid, false, s.probe)
	}
	if err != nil {
		s.warn("memory-unseen", "the memory of the Ollama server at %s is not measured: %v; Ollama's own figures are "+
			"recorded", u, err)
		return "", "", false
	}
	if path, err = os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe")); err != nil {
		return "", "", true // another operating system or user
	}
	sha256, _ = cache.HashFile(path) // empty if unreadable
	return path, sha256, true
}
