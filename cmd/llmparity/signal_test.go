//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/cache"
	"llmparity/internal/child"
	"llmparity/internal/fault"
	"llmparity/internal/modellib"
	"llmparity/internal/record"
)

// moments are phases of a run, recognised by the journal.
var moments = []struct{ name, journal, tokens string }{
	{"browser starting", `"begin"`, "64"},
	{"model loading", `"name":"baseline"`, "64"},
	{"generating", `"name":"warmup"`, "64"},
	{"second engine", `"attempt":2,"begin"`, "4"}, // soon
}

func TestSignalsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal syscall.Signal
		code   int
		at     []int // moments; kills at others has TestKilledRunsResume
	}{{syscall.SIGINT, 130, []int{0, 2, 3}}, {syscall.SIGTERM, 143, []int{1}}, {syscall.SIGKILL, -1, []int{2}}} {
		for _, at := range c.at {
			moment := moments[at]
			t.Run(fmt.Sprintf("%v/%s", c.signal, moment.name), func(t *testing.T) {
				t.Parallel()
				cmd := program(t, "run", "--repetitions", "2", "--max-tokens", moment.tokens)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				check(t, cmd.Start())
				latest := filepath.Join(cmd.Dir, "results", "latest")
				waitFor(t, "the journal to hold "+moment.journal, func() bool {
					text, _ := os.ReadFile(filepath.Join(latest, "journal.jsonl")) // not there yet: not yet
					return strings.Contains(string(text), moment.journal)
				})
				groups := groupsOf(t, cmd.Process.Pid)
				check(t, cmd.Process.Signal(c.signal))
				if c.signal == syscall.SIGTERM { // `timeout` signals the process and then its group: that is one signal
					time.Sleep(50 * time.Millisecond)
					_ = cmd.Process.Signal(c.signal) // it may have ended
				}
				_ = cmd.Wait() // its exit code is what counts
				if code := cmd.ProcessState.ExitCode(); code != c.code ||
					c.signal == syscall.SIGTERM && !strings.Contains(stderr.String(), "llmparity: terminated") {
					t.Errorf("exit code %d, want %d\n%s", code, c.code, &stderr)
				}
				waitFor(t, "its processes to end",
					func() bool { return len(child.Tagged(cmd.Process.Pid))+len(members(groups, cmd.Dir)) == 0 })
				if c.signal == syscall.SIGKILL { // what it leaves the next start removes
					next := program(t, "--help")
					next.Env = cmd.Env
					well(t, next)
				}
				if left := temporary(t, cmd.Dir); len(left) > 0 {
					t.Errorf("temporary files are left: %v", left)
				}
				r, err := record.Open(latest)
				if err != nil {
					t.Fatalf("the record can't be read: %v", err)
				}
				if r.Status != record.Interrupted || len(r.Attempts) == 0 {
					t.Errorf("status %s, %d attempts", r.Status, len(r.Attempts))
				}
			})
		}
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	cmd := program(t)
	cmd.Env = append(slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, asProgram+"=") }),
		asStubborn+"=1")
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	says := bufio.NewScanner(out)
	for _, want := range []string{"begun <nil>", "asked"} {
		if !says.Scan() || says.Text() != want {
			t.Fatalf("%q, want %q", says.Text(), want)
		}
		if want == "asked" {
			time.Sleep(oneSignal) // since it was asked
		}
		check(t, cmd.Process.Signal(syscall.SIGTERM))
	}
	_ = cmd.Wait() // its exit code is what counts
	if code := cmd.ProcessState.ExitCode(); code != fault.Terminated.ExitCode() {
		t.Errorf("exit code %d", code)
	}
	if left := temporary(t, cmd.Dir); len(left) > 0 || len(child.Tagged(cmd.Process.Pid)) > 0 {
		t.Errorf("left behind: %v, %v", left, child.Tagged(cmd.Process.Pid))
	}
}

// The compilation before a first run can be interrupted too.
func TestSignalWhileCompiling(t *testing.T) {
	t.Parallel()
	tools := modellib.FindTools(cache.Dir(os.Getenv), os.Getenv)
	for _, signal := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, fault.Interrupted.ExitCode()}, {syscall.SIGKILL, -1}} {
		t.Run(signal.signal.String(), func(t *testing.T) {
			cmd := program(t, "run", "--engines", "webllm")
			cmd.Env = append(cmd.Env, "LLMPARITY_CACHE="+filepath.Join(cmd.Dir, "cache"),
				"LLMPARITY_PYTHON="+tools.Python)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			check(t, cmd.Start())
			var emcc []int
			waitFor(t, "a compiler to run", func() bool {
				emcc = compilers(cmd.Process.Pid)
				return len(emcc) > 0
			})
			check(t, cmd.Process.Signal(signal.signal))
			_ = cmd.Wait() // its exit code is what counts
			if code := cmd.ProcessState.ExitCode(); code != signal.code {
				t.Errorf("exit code %d, want %d\n%s", code, signal.code, &stderr)
			}
			waitFor(t, "every process to end", func() bool { return len(child.Tagged(cmd.Process.Pid)) == 0 })
			if left := temporary(t, cmd.Dir); signal.signal != syscall.SIGKILL && len(left) > 0 {
				t.Errorf("temporary files are left: %v", left)
			}
		})
	}
}

// compilers lists the clang processes below a process.
func compilers(pid int) []int {
	var found []int
	for _, p := range child.Tagged(pid) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p)) // ended meanwhile: none
		if program, _, _ := bytes.Cut(line, []byte{0}); bytes.Contains(program, []byte("clang")) {
			found = append(found, p)
		}
	}
	return found
}

// groupsOf returns the process groups of a process's descendants. Children of a browser lose our tag, but stay in its
// group.
func groupsOf(t *testing.T, pid int) map[int]bool {
	t.Helper()
	groups := map[int]bool{}
	for _, p := range child.Tagged(pid) {
		if g, err := syscall.Getpgid(p); err == nil && g != syscall.Getpgrp() {
			groups[g] = true
		}
	}
	return groups
}

// members lists living processes of groups, and those whose command line contains a folder.
func members(groups map[int]bool, dir string) []int {
	entries, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(filepath.Base(e))
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(e, "stat")) // ended meanwhile: no member
		line, _ := os.ReadFile(filepath.Join(e, "cmdline"))
		group, err := syscall.Getpgid(pid)
		if zombie := bytes.Contains(stat, []byte(") Z ")); err != nil || zombie {
			continue
		}
		if groups[group] || bytes.Contains(line, []byte(dir)) {
			found = append(found, pid)
		}
	}
	return found
}

func temporary(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "tmp"))
	check(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
