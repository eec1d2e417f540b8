package ollama

import (
	"context"
	"errors"
	"fmt"
	"net"
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
)

// What processes of Ollama's are to it.
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

// family is a server and its runners, as they come and go.
type family struct {
	tree   *proc.Tree // nil: they can't be seen
	root   int        // the server's pid; 0: not seen
	others *sieve     // of a server that others use too; nil: it is ours alone

	mu      sync.Mutex
	runners []int // by age
}

// follow samples a server and what descends from it; of one that is not ours without the runners of other models.
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
				text = "process %d is Ollama's runner of another model, as far as is known, and not sampled"
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

// claim says which files our model is made of.
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

// runner is what a runner's command line tells; zero and empty what it doesn't.
type runner struct {
	pid                        int
	context, parallel, threads int // the context is that of all that go on at once
	mmap, kv, flash            string
	args                       []string // without the model's path
}

// runner gives the youngest that has one of the files, by their sums, in its command line: others are of other models,
// which others asked for. Where none has, none was seen.
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

// holds tells whether a runner's command line names one of the files.
func holds(line, blobs []string) bool {
	return slices.ContainsFunc(line, func(arg string) bool {
		return slices.ContainsFunc(blobs, func(sum string) bool { return strings.HasSuffix(arg, "sha256-"+sum) })
	})
}

func parseRunner(pid int, line []string) runner {
	r := runner{pid: pid}
	if len(line) < 2 || !slices.Contains(line, "--ctx-size") {
		return r // newer versions tell their runners in another way
	}
	r.mmap, r.kv, r.flash = "on", "f16", "off"
	for i, arg := range line {
		value := ""
		if i+1 < len(line) {
			value = line[i+1]
		}
		n, _ := strconv.Atoi(value) // 0: not told
		switch arg {
		case "--ctx-size":
			r.context = n
		case "--parallel":
			r.parallel = n
		case "--threads":
			r.threads = n
		case "--no-mmap":
			r.mmap = "off"
		case "--flash-attn":
			r.flash = "on"
		case "--kv-cache-type":
			r.kv = value
		}
		if i > 1 && arg != "--model" && line[i-1] != "--model" && arg != "--port" && line[i-1] != "--port" {
			r.args = append(r.args, arg)
		}
	}
	return r
}

// see looks for the processes of a server that ran already.
func (s *session) see(a address) (path, sha256 string, seen bool) {
	pid, err := serves(a)
	if err == nil {
		err = s.family.follow(pid, false, s.probe)
	}
	if err != nil {
		s.warn("memory-unseen", "the memory of the Ollama server at %s is not measured: %v; what Ollama itself says is recorded", a.URL, err)
		return "", "", false
	}
	if path, err = os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe")); err != nil {
		return "", "", true // another system, or another user's
	}
	sha256, _ = cache.HashFile(path) // empty where it can't be read
	return path, sha256, true
}

// serves finds the process that is the server at an address.
func serves(a address) (int, error) {
	port := a.port()
	if port == 0 {
		return 0, errors.New("it is on another machine")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	pid, err := proc.PIDOfListener(ctx, net.JoinHostPort(a.Hostname(), strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	if pid == os.Getpid() {
		return 0, errors.New("it is part of this program")
	}
	p, err := proc.Look(pid)
	if err != nil {
		return 0, err
	}
	line := proc.CommandLine(pid)
	if !strings.Contains(strings.ToLower(p.Name+" "+strings.Join(line[:min(1, len(line))], "")), Name) {
		return 0, fmt.Errorf("process %d (%s) listens on its port, which is no Ollama: a proxy, or a container's door",
			pid, p.Name)
	}
	return pid, nil
}
