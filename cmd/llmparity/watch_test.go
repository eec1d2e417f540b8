package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"llmparity/internal/bench/watch"
	"llmparity/internal/kit/fault"
)

// uniqueName is a name that no other process has.
func uniqueName() string { return fmt.Sprintf("6%d%09d", os.Getpid(), time.Now().Nanosecond()) }

// asleep starts a process with a name in its command line, and ends it with the test.
func asleep(t *testing.T, name string) *os.Process {
	t.Helper()
	sleep := exec.Command("sleep", name)
	check(t, sleep.Start())
	t.Cleanup(func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait() // killed, as it should be
	})
	return sleep.Process
}

func rowsOf(t *testing.T, path string) [][]string {
	t.Helper()
	text := readFile(t, path)
	if !strings.HasPrefix(text, watch.Columns+"\n") || !strings.HasSuffix(text, "\n") {
		t.Errorf("%.200s", text)
	}
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	check(t, err)
	return all[1:]
}

func TestWatchCommand(t *testing.T) {
	lightTest(t)
	cmd := program(t, "watch", "--label", "run1", "--interval", "0.05", "--output", "out.csv", "--", "sh", "-c",
		"echo hello; sleep 0.15; exit 5")
	stdout, stderr, code := output(t, cmd)
	if code != 5 || stdout != "hello\n" || !strings.Contains(stderr, "exit code 5") ||
		!strings.Contains(stderr, "cost of watching") {
		t.Errorf("code %d, stdout %q\n%s", code, stdout, stderr)
	}
	rows := rowsOf(t, filepath.Join(cmd.Dir, "out.csv"))
	if len(rows) < 2 || rows[0][1] != "run1" {
		t.Errorf("rows: %v", rows)
	}
	ends(t, resumed(cmd, "watch", "--output", "out.csv", "--", "true"), fault.Usage, "--overwrite")
}

// The parent and other watching processes have the name in their command line too.
func TestWatchSkipsItselfAndParent(t *testing.T) {
	lightTest(t)
	name := uniqueName()
	other := program(t, "watch", "--name", name, "--wait", "60")
	check(t, other.Start())
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait() // killed, as it should be
	}()
	cmd := program(t)
	cmd.Args = []string{"sh", "-c", os.Args[0] + " watch --wait 0.3 --name " + name + "; exit $?"}
	cmd.Path = "/bin/sh"
	if _, stderr := ends(t, cmd, fault.NothingToWatch); strings.Contains(stderr, "watching process") {
		t.Error(stderr)
	}
}

func TestWatchLive(t *testing.T) {
	lightTest(t)
	pid := fmt.Sprint(asleep(t, uniqueName()).Pid)
	line := os.Args[0] + " watch --live --duration 1 --interval 0.05 --pid " + pid
	stdout, stderr := well(t, inTerminal(t, 80, line))
	if strings.Count(stdout, "RSS, light; PSS, dark") < 2 ||
		!strings.HasSuffix(strings.TrimSpace(stdout), "per sample") ||
		strings.LastIndex(stdout, "\x1b[?25h") < strings.LastIndex(stdout, "\x1b[?25l") { // the cursor is shown again
		t.Errorf("%s\n%q", stderr, stdout)
	}
	_, stderr = well(t, program(t, "watch", "--live", "--duration", "0.3", "--interval", "0.05", "--pid", pid),
		"1 process  RSS")
	if strings.Contains(stderr, "\x1b") {
		t.Errorf("without a terminal: %q", stderr)
	}
}

// inTerminal runs a command line in a terminal with some columns. It replaces the shell, which would get the terminal's
// signals too.
func inTerminal(t *testing.T, columns int, line string) *exec.Cmd {
	t.Helper()
	script, err := exec.LookPath("script")
	if err != nil {
		t.Fatalf("no `script`, which makes a terminal: install util-linux (%v)", err)
	}
	cmd := program(t)
	cmd.Path, cmd.Args = script, []string{"script", "-qec", fmt.Sprintf("stty cols %d rows 24; exec %s", columns, line),
		"/dev/null"}
	cmd.Env = append(cmd.Env, "SHELL=/bin/sh") // else the user's own, which may be any
	return cmd
}

// The command decides what an interrupt does; a second one ends it.
func TestInterruptGoesToWatchedCommand(t *testing.T) {
	racedTest(t)
	for _, c := range []struct {
		trap  string
		times int
		code  int
	}{{"echo caught; exit 4", 1, 4}, {"echo caught", 2, 130}} {
		cmd := inTerminal(t, 40, os.Args[0]+` watch -- sh -c 'trap "`+c.trap+
			`" INT; echo ready; while :; do sleep 0.05; done'`)
		in, err := cmd.StdinPipe()
		check(t, err)
		out, err := cmd.StdoutPipe()
		check(t, err)
		check(t, cmd.Start())
		hung := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
		defer hung.Stop()
		var text strings.Builder
		buf := make([]byte, 1000)
		typed := 0
		for n := 0; err == nil; {
			n, err = out.Read(buf)
			text.Write(buf[:n])
			said := func(words string) bool { return strings.Contains(text.String(), words) }
			// Two of a kind that nobody has seen yet are one: the second waits until both have seen the first.
			if typed == 0 && said("ready\r") || typed == 1 && c.times == 2 && said("caught\r") &&
				said("interrupt again to end it") {
				typed++
				if _, err := in.Write([]byte{3}); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // its exit code is what counts
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(text.String(), "caught") ||
			!strings.Contains(text.String(), "peak RSS") {
			t.Errorf("%s: code %d, want %d\n%s", c.trap, code, c.code, &text)
		}
		_ = in.Close()
	}
}

// A process that reads the rows, and the script that started both, are not watched.
func TestWatchByNameIgnoresReader(t *testing.T) {
	lightTest(t)
	name := uniqueName()
	sleep := asleep(t, "1."+name)
	go func() { _, _ = sleep.Wait() }() // a second long
	cmd := program(t)
	script := put(t, cmd.Dir, "script"+name,
		os.Args[0]+" watch --name "+name+" --interval 0.05 -o - | tee "+name+".csv; exit 0\n")
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", script}
	if stdout, stderr := well(t, cmd); strings.Count(stderr, "watching process") != 1 ||
		strings.Count(stdout, ",sleep\n") < 2 {
		t.Errorf("%s\n%s", stderr, stdout)
	}
}

func TestWatchNeverWatchesAnotherWatch(t *testing.T) {
	lightTest(t)
	inner := os.Args[0] + " watch --duration 0.5 --pid $$ > /dev/null 2>&1; exit 0"
	_, stderr := well(t, program(t, "watch", "--interval", "0.02", "--", "sh", "-c", inner))
	if strings.Count(stderr, "watching process") != 1 {
		t.Error(stderr)
	}
}

func TestWatchWithGPUs(t *testing.T) {
	lightTest(t)
	cmd := program(t, "watch", "--gpu", "--output", "out.csv", "--", "sleep", "0.6")
	_, stderr := well(t, cmd)
	found := there(filepath.Join(cmd.Dir, "out.gpu.csv"))
	if len(rowsOf(t, filepath.Join(cmd.Dir, "out.csv"))) == 0 || !found && !strings.Contains(stderr, "can't read") &&
		strings.Count(stderr, "no GPU found") != 1 || found && strings.Contains(stderr, "no GPU found") {
		t.Errorf("out.gpu.csv: %v\n%s", found, stderr)
	}
	if _, stderr := well(t, program(t, "watch", "--", "true")); strings.Contains(stderr, "GPU") {
		t.Errorf("GPUs were read without --gpu:\n%s", stderr)
	}
}
