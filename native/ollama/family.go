package ollama

import (
	"cmp"
	"context"
	"fmt"
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
	"llmparity/internal/record"
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

// family is a server and its runners, which come and go.
type family struct {
	tree   *proc.Tree // nil: not visible
	root   int        // the server's pid; 0: not visible
	others *sieve     // for a server that others use, too; nil: it is ours

	mu      sync.Mutex
	runners []int // oldest first
}

// follow samples a server and its descendants. If the server is not ours, runners of other models are left out.
func (f *family) follow(pid int, ours bool, p engine.Probe) error {
	attach := p.Attach
	if !ours {
		f.others = &sieve{attach: p.Attach}
		attach = f.others.take
	}
	t, err := proc.NewTree(pid, role, attach, proc.TreeOptions{Ours: ours,
		Appeared: func(pid int, role string) {
			if role != roleRunner {
				return
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.runners = append(f.runners, pid)
			text := "Ollama's runner is process %d"
			if f.others != nil && f.others.keeps(pid) {
				text = "process %d seems to be Ollama's runner of another model; it is not sampled"
			}
			p.Event(record.Event{At: time.Now(), Text: fmt.Sprintf(text, pid)})
		},
		Ended: func(pid int, role string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.runners = slices.DeleteFunc(f.runners, func(r int) bool { return r == pid })
		}})
	if err != nil {
		return err
	}
	f.tree, f.root = t, pid
	return nil
}

// claim says which files our model consists of.
func (f *family) claim(blobs []string) {
	if f.others != nil {
		f.others.claim(blobs)
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
func (f *family) runner(blobs []string) runner {
	f.mu.Lock()
	pids := slices.Clone(f.runners)
	f.mu.Unlock()
	for _, pid := range slices.Backward(pids) {
		if line := proc.CommandLine(pid); holds(line, blobs) {
			return parseRunner(pid, line)
		}
	}
	return runner{}
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
	pid, err := serves(u)
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

// serves finds the process that listens at an address.
func serves(u *url.URL) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	pid, program, err := launch.Listener(ctx, wire.HostPort(u), wire.IsHere(u.Hostname()))
	if err == nil && !strings.Contains(strings.ToLower(program), Name) {
		err = fmt.Errorf("process %d (%s) listens on its port and is not Ollama, but perhaps a proxy or container", pid,
			program)
	}
	return pid, err
}
