package ollama

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/sample/proc"
	"llmparity/native/launch"
	"llmparity/native/wire"
)

// Roles of Ollama's processes.
const (
	roleServer = "server"
	roleRunner = "runner"
)

func role(cmdline []string) string {
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
	tree *proc.Tree               // nil: not visible
	root int                      // the server's pid; 0: not visible
	ours atomic.Pointer[[]string] // hashes of our model's files; its runner is sampled once they are known
}

// follow samples a server, which is ours or was already running, and its descendants.
func (f *family) follow(pid int, ours bool, p engine.Probe) (err error) {
	f.tree, err = proc.NewTree(pid, func(line []string) string {
		r, blobs := role(line), f.ours.Load()
		if !ours && r == roleRunner && strings.Contains(strings.Join(line, " "), "sha256-") &&
			(blobs == nil || !holds(line, *blobs)) {
			return proc.NotYet
		}
		return r
	}, p.Attach, ours)
	if err == nil {
		f.root = pid
	}
	return err
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
	for _, pid := range f.tree.PIDs() {
		if line := proc.CommandLine(pid); pid > youngest.pid && role(line) == roleRunner && holds(line, blobs) {
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

// see finds the processes of a running server, and its program if that is readable.
func (s *session) see() (path, sha256 string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	at := s.client.at
	pid, program, err := launch.Listener(ctx, wire.HostPort(at), wire.IsHere(at.Hostname()))
	if err == nil && !strings.Contains(strings.ToLower(program), Name) {
		err = fmt.Errorf("process %d (%s) listens on its port and is not Ollama, but perhaps a proxy or container", pid,
			program)
	}
	if err == nil {
		err = s.family.follow(pid, false, s.probe)
	}
	if err != nil {
		s.warn("memory-unseen", "the memory of the Ollama server at %s is not measured: %v; Ollama's own figures are "+
			"recorded", at, err)
		return "", ""
	}
	if path, err = os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe")); err != nil {
		return "", "" // another operating system or user
	}
	sha256, _ = cache.HashFile(path) // empty if unreadable
	return path, sha256
}
