//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/compare/comparetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/modellib"
	"llmparity/internal/record"
)

// A run is signalled in phases that its journal shows.
func TestSignalsLeaveNothingBehind(t *testing.T) {
	racedTest(t)
	t.Parallel()
	for _, c := range []struct {
		signal                  syscall.Signal
		moment, journal, tokens string
	}{
		{syscall.SIGINT, "browser starting", `"begin"`, "64"},
		{syscall.SIGTERM, "model loading", `"name":"baseline"`, "64"},
		{syscall.SIGINT, "generating", `"name":"warmup"`, "64"},
		{syscall.SIGKILL, "generating", `"name":"warmup"`, "64"},      // kills at others has TestKilledRunsResume
		{syscall.SIGINT, "second engine", `"attempt":2,"begin"`, "4"}, // soon
	} {
		t.Run(fmt.Sprintf("%v/%s", c.signal, c.moment), func(t *testing.T) {
			t.Parallel()
			cmd := program(t, "run", "--repetitions", "2", "--max-tokens", c.tokens)
			stderr := signalled(t, cmd, c.signal, "the journal to hold "+c.journal,
				func() bool { return journal(cmd, c.journal) })
			switch c.signal {
			case syscall.SIGTERM:
				mentions(t, stderr, "llmparity: terminated")
			case syscall.SIGKILL: // what it leaves the next start removes
				well(t, resumed(cmd, "--help"))
				if left := temporary(t, cmd.Dir); len(left) > 0 {
					t.Errorf("temporary files are left: %v", left)
				}
			}
			if r := recorded(t, cmd.Dir); r.Status != record.Interrupted || len(r.Attempts) == 0 {
				t.Errorf("status %s, %d attempts", r.Status, len(r.Attempts))
			}
		})
	}
}

// signalled starts a command, signals it when something has happened, and returns what it printed to standard error. It
// checks the exit code, and that no process is left and, unless the command is killed, no temporary file.
func signalled(t *testing.T, cmd *exec.Cmd, signal syscall.Signal, what string, happened func() bool) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 10 * time.Second // for a process that keeps the pipe
	check(t, cmd.Start())
	waitFor(t, what, happened)
	groups := groupsOf(t, cmd.Process.Pid)
	check(t, cmd.Process.Signal(signal))
	// `timeout` signals a process and then its group: that is one signal.
	if signal == syscall.SIGTERM && cmd.Args[1] == "run" {
		time.Sleep(50 * time.Millisecond)
		_ = cmd.Process.Signal(signal) // it may have ended
	}
	_ = cmd.Wait() // its exit code is what counts
	want := map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGKILL: -1}[signal]
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Errorf("%v: exit code %d, want %d\n%s", signal, code, want, &stderr)
	}
	waitFor(t, "its processes to end",
		func() bool { return len(child.Tagged(cmd.Process.Pid))+len(members(groups, cmd.Dir)) == 0 })
	if left := temporary(t, cmd.Dir); signal != syscall.SIGKILL && len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	return stderr.String()
}

// journal reports whether the journal of a run has a text; it may not be there yet.
func journal(cmd *exec.Cmd, text string) bool {
	written, _ := os.ReadFile(filepath.Join(cmd.Dir, "results", "latest", "journal.jsonl"))
	return strings.Contains(string(written), text)
}

// Ollama's runner would outlive its server.
func TestKillLeavesNoRunner(t *testing.T) {
	racedTest(t)
	t.Parallel()
	cmd := program(t, "run", "--engines", "ollama", "--repetitions", "50")
	signalled(t, cmd, syscall.SIGKILL, "a runner", func() bool { return runs(cmd, "runner") })
	if !journal(cmd, "") {
		t.Error("there is no journal")
	}
}

// Workers of an exec: engine end even if the run is killed.
func TestWorkersOfExecEngineEndWithRun(t *testing.T) {
	racedTest(t)
	t.Parallel()
	cmd := program(t, "run", "-q", "--engine", "exec:./echo.py", "--max-tokens", "900", "--repetitions", "1")
	put(t, cmd.Dir, "echo.py", strings.Replace(documentsPython(t), "import json, sys, time\n",
		"import json, subprocess, sys, time\n\nsubprocess.Popen(['sleep', '600'], stdin=subprocess.DEVNULL)\n", 1))
	signalled(t, cmd, syscall.SIGKILL, "a model to be loaded while a worker sleeps",
		func() bool { return journal(cmd, `"name":"load"`) && runs(cmd, "600") })
}

// An interrupted drawing leaves no figure, browser or profile.
func TestSignalWhileDrawingFigures(t *testing.T) {
	racedTest(t)
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "figures")
	cmd := program(t, "report", comparetest.Write(t, root, "one", comparetest.Native(1)), "--figures", dir)
	signalled(t, cmd, syscall.SIGINT, "a browser to run", func() bool { return len(child.Tagged(cmd.Process.Pid)) > 0 })
	if there(dir) {
		t.Errorf("%s is left", dir)
	}
}

// The compilation before a first run can be interrupted too.
func TestSignalWhileCompiling(t *testing.T) {
	racedTest(t)
	t.Parallel()
	tools := modellib.FindTools(cache.Dir(os.Getenv), os.Getenv)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd := program(t, "run", "--engines", "webllm")
			cmd.Env = append(cmd.Env, "LLMPARITY_CACHE="+filepath.Join(cmd.Dir, "cache"),
				"LLMPARITY_PYTHON="+tools.Python)
			signalled(t, cmd, signal, "a compiler to run", func() bool { return runs(cmd, "clang") })
		})
	}
}

// runs reports whether a command has a process with a word, such as a program's name, in its command line.
func runs(cmd *exec.Cmd, word string) bool {
	return slices.ContainsFunc(child.Tagged(cmd.Process.Pid), func(pid int) bool {
		return slices.ContainsFunc(proc.CommandLine(pid),
			func(argument string) bool { return strings.HasPrefix(filepath.Base(argument), word) })
	})
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	racedTest(t)
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
		line := strings.Join(proc.CommandLine(pid), " ")
		group, err := syscall.Getpgid(pid)
		if zombie := bytes.Contains(stat, []byte(") Z ")); err != nil || zombie {
			continue
		}
		if groups[group] || strings.Contains(line, dir) {
			found = append(found, pid)
		}
	}
	return found
}

func temporary(t *testing.T, dir string) []string {
	t.Helper()
	return filesIn(t, filepath.Join(dir, "tmp"))
}

func TestSignalsEndWatchingWithWholeRows(t *testing.T) {
	racedTest(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		for _, started := range []bool{false, true} {
			name := uniqueName()
			cmd := program(t, "watch", "--name", name, "--interval", "0.02", "--output", "out.csv")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal's
			if started {
				cmd.Args = append(cmd.Args[:2], "--interval", "0.02", "--output", "out.csv", "--", "sleep", name)
			} else {
				asleep(t, name)
			}
			path := filepath.Join(cmd.Dir, "out.csv")
			stderr := signalled(t, cmd, signal, "rows", func() bool {
				text, _ := os.ReadFile(path) // not there yet: not yet
				return bytes.Count(text, []byte("\n")) > 5
			})
			if signal != syscall.SIGKILL {
				mentions(t, stderr, "rows in out.csv")
			}
			if rows := rowsOf(t, path); len(rows) < 5 {
				t.Errorf("%v: %d rows", signal, len(rows))
			}
		}
	}
}
