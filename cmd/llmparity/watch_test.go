package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/fault"
	"llmparity/internal/watch"
)

// uniqueName is in no command line but those of the test that asks.
func uniqueName() string { return fmt.Sprintf("6%d%09d", os.Getpid(), time.Now().Nanosecond()) }

func rowsOf(t *testing.T, path string) [][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), watch.Columns+"\n") || !strings.HasSuffix(string(text), "\n") {
		t.Errorf("%.200s", text)
	}
	all, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all[1:]
}

func TestWatchACommand(t *testing.T) {
	cmd := program(t, "watch", "--label", "run1", "--interval", "0.05", "--output", "out.csv", "--", "sh", "-c", "echo hello; sleep 0.15; exit 5")
	stdout, stderr, code := output(t, cmd)
	if code != 5 || stdout != "hello\n" || !strings.Contains(stderr, "exit code 5") || !strings.Contains(stderr, "own cost") {
		t.Errorf("code %d, stdout %q\n%s", code, stdout, stderr)
	}
	rows := rowsOf(t, filepath.Join(cmd.Dir, "out.csv"))
	if len(rows) < 2 || rows[0][1] != "run1" {
		t.Errorf("rows: %v", rows)
	}
	again := program(t, "watch", "--output", filepath.Join(cmd.Dir, "out.csv"), "--", "true")
	if _, stderr, code := output(t, again); code != int(fault.Usage) || !strings.Contains(stderr, "--overwrite") {
		t.Errorf("the file exists: code %d, %s", code, stderr)
	}
}

// Whoever starts the program has the name in the command line too, and so has another that watches.
func TestWatchFindsNeitherItselfNorWhoStartedIt(t *testing.T) {
	name := uniqueName()
	other := program(t, "watch", "--name", name, "--wait", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait() // killed, as it should be
	}()
	cmd := program(t)
	cmd.Args = []string{"sh", "-c", os.Args[0] + " watch --wait 0.3 --name " + name + "; exit $?"}
	cmd.Path = "/bin/sh"
	_, stderr, code := output(t, cmd)
	if code != int(fault.NothingToWatch) || strings.Contains(stderr, "watching process") {
		t.Errorf("code %d\n%s", code, stderr)
	}
}

func TestSignalsEndWatchingWithWholeRows(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		for _, started := range []bool{false, true} {
			name := uniqueName()
			cmd := program(t, "watch", "--name", name, "--interval", "0.02", "--output", "out.csv")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal's
			if started {
				cmd.Args = append(cmd.Args[:2], "--interval", "0.02", "--output", "out.csv", "--", "sleep", name)
			} else {
				sleep := exec.Command("sleep", name)
				if err := sleep.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() {
					_ = sleep.Process.Kill()
					_ = sleep.Wait() // killed, as it should be
				}()
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(cmd.Dir, "out.csv")
			waitFor(t, "rows", func() bool {
				text, _ := os.ReadFile(path) // not there yet: not yet
				return bytes.Count(text, []byte("\n")) > 5
			})
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // its exit code is what counts
			want := map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGKILL: -1}[signal]
			if code := cmd.ProcessState.ExitCode(); code != want {
				t.Errorf("%v: exit code %d, want %d\n%s", signal, code, want, &stderr)
			}
			if signal != syscall.SIGKILL && !strings.Contains(stderr.String(), "rows in out.csv") {
				t.Errorf("%v: no summary\n%s", signal, &stderr)
			}
			if rows := rowsOf(t, path); len(rows) < 5 {
				t.Errorf("%v: %d rows", signal, len(rows))
			}
			waitFor(t, "the command to end", func() bool { return len(child.Tagged(cmd.Process.Pid)) == 0 })
		}
	}
}

func TestWatchWhatMakesNoSense(t *testing.T) {
	for _, args := range [][]string{
		{}, {"ollama"}, {"--name", "a", "--pid", "1"}, {"--name", "a", "--", "true"}, {"--pid", "0"}, {"--pid", "x"},
		{"--name", "a", "--interval", "0"}, {"--name", "a", "--interval", "-1"}, {"--name", "a", "--duration", "soon"}, {"--name", "a", "--wait", "NaN"},
		{"--name", "a", "--max-samples", "-1"}, {"--output", "-", "--", "true"},
	} {
		if _, stderr, code := output(t, program(t, append([]string{"watch"}, args...)...)); code != int(fault.Usage) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: code %d, %s", args, code, stderr)
		}
	}
}

// A chart is drawn in a terminal and the cursor is there again afterwards.
func TestWatchLive(t *testing.T) {
	script, err := exec.LookPath("script")
	if err != nil {
		t.Fatalf("no `script`, which makes a terminal: install util-linux (%v)", err)
	}
	name := uniqueName()
	sleep := exec.Command("sleep", name)
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait() // killed, as it should be
	}()
	line := fmt.Sprintf("stty cols 80 rows 24; exec %s watch --live --duration 1 --interval 0.05 --pid %d", os.Args[0], sleep.Process.Pid)
	cmd := program(t)
	cmd.Path, cmd.Args = script, []string{"script", "-qec", line, "/dev/null"}
	stdout, stderr, code := output(t, cmd)
	if code != 0 || strings.Count(stdout, "RSS, line; PSS, filled") < 2 || !strings.HasSuffix(strings.TrimSpace(stdout), "a sample") {
		t.Errorf("code %d\n%s\n%q", code, stderr, stdout)
	}
	if strings.LastIndex(stdout, "\x1b[?25h") < strings.LastIndex(stdout, "\x1b[?25l") {
		t.Error("the cursor is not shown again")
	}
	_, stderr, code = output(t, program(t, "watch", "--live", "--duration", "0.3", "--interval", "0.05", "--pid", fmt.Sprint(sleep.Process.Pid)))
	if code != 0 || strings.Contains(stderr, "\x1b") || !strings.Contains(stderr, "1 process  RSS") {
		t.Errorf("without a terminal: code %d\n%q", code, stderr)
	}
}
