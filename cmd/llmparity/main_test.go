package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// asProgram makes the test binary the program itself, which tests can signal.
const asProgram = "LLMPARITY_TEST_PROGRAM"

// asStubborn makes the test binary a program that has a folder and a process and ignores its end.
const asStubborn = "LLMPARITY_TEST_STUBBORN"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asProgram) != "":
		os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
	case os.Getenv(asStubborn) != "":
		stubborn()
	}
	testscript.Main(m, map[string]func(){"llmparity": main})
}

// $LLMPARITY_TESTS chooses one group of tests, which make test runs at a time and in a way of its own; unset, all run.
// Each test begins with its group, which scripts/lint checks.

// browserTest is for tests that start a browser.
func browserTest(t testing.TB) { inGroup(t, "browser") }

// racedTest is for tests that start and stop runs, where goroutines meet: make test runs them with the race detector.
// The others call one package after another, and each of those is tested with it itself.
func racedTest(t testing.TB) { inGroup(t, "raced") }

// lightTest is for all others.
func lightTest(t testing.TB) { inGroup(t, "light") }

func inGroup(t testing.TB, group string) {
	t.Helper()
	if chosen := os.Getenv("LLMPARITY_TESTS"); chosen != "" && chosen != group {
		t.Skip("$LLMPARITY_TESTS is " + chosen)
	}
}

// stubborn prints when it has begun, and when it is asked to end.
func stubborn() {
	ctx, _ := untilSignal(context.Background())
	dir, err := child.Scratch("test")
	if err == nil {
		_, err = child.Start(context.Background(),
			exec.Command("sh", "-c", `while :; do echo >"$0/$(date +%N)"; done`, dir))
	}
	fmt.Println("begun", err)
	<-ctx.Done()
	fmt.Println("asked")
	select {}
}

// shortDir returns a folder with a path short enough for sockets, unlike t.TempDir.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lp")
	check(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// program is a command of the program in a temporary folder, with the cache of the set-up.
func program(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	dir := shortDir(t)
	temp := filepath.Join(dir, "tmp")
	check(t, os.Mkdir(temp, 0o755))
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+temp, "LLMPARITY_CACHE="+cache.Dir(os.Getenv))
	return cmd
}

// resumed is a command in the folder of another.
func resumed(earlier *exec.Cmd, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir, cmd.Env = earlier.Dir, earlier.Env
	return cmd
}

// oneLaunch is a run of one launch of each engine without warm-up, to save a start of the browser.
func oneLaunch(t testing.TB, engines string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := program(t, append([]string{"run", "one.yaml"}, args...)...)
	plan := "name: one\nengines: [" + engines +
		"]\nmodel: tiny\nprompts: [the quick]\nmax_tokens: 8\nwarmup: {launches: 0, tokens: 1}\nrepetitions: 1\ntimeout: 3m\n"
	put(t, cmd.Dir, "one.yaml", plan)
	return cmd
}

// output runs the program to its end.
func output(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	if e := cmd.Run(); e != nil && cmd.ProcessState == nil {
		t.Fatal(e)
	}
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

// check ends the test on an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// well returns the output of a command that must succeed and print words.
func well(t *testing.T, cmd *exec.Cmd, words ...string) (stdout, stderr string) {
	t.Helper()
	return ends(t, cmd, "", words...)
}

// ends returns the output of a command that must end with the exit code of a class and print words.
func ends(t *testing.T, cmd *exec.Cmd, kind fault.Kind, words ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, code := output(t, cmd)
	if code != kind.ExitCode() {
		t.Fatalf("%q: exit code %d, want %d\n%s%s", cmd.Args[1:], code, kind.ExitCode(), stdout, stderr)
	}
	mentions(t, stdout+stderr, words...)
	return stdout, stderr
}

// refuses checks that a command ends with the exit code of a class and has words in its last line, and returns this
// line.
func refuses(t *testing.T, cmd *exec.Cmd, kind fault.Kind, words ...string) string {
	t.Helper()
	_, stderr := ends(t, cmd, kind)
	line := strings.TrimSpace(stderr)
	line = line[strings.LastIndex(line, "\n")+1:]
	mentions(t, line, words...)
	return line
}

// details prints the last run of a folder in full.
func details(t *testing.T, dir string) string {
	t.Helper()
	return good(t, "report", filepath.Join(dir, "results", "latest"), "--details")
}

// mentions checks that a text contains words.
func mentions(t *testing.T, text string, words ...string) {
	t.Helper()
	flat := strings.Join(strings.Fields(text), " ") // wherever lines are folded
	for _, want := range words {
		if !strings.Contains(text, want) && !strings.Contains(flat, want) {
			t.Errorf("%q is not in\n%.20000s", want, text)
		}
	}
}

// put writes a file, which may be a program, and returns its path.
func put(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	return string(text)
}

// decoded reads JSON.
func decoded[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

// opened opens the folder of a run.
func opened(t testing.TB, dir string) *record.Run {
	t.Helper()
	r, err := record.Open(dir)
	check(t, err)
	return r
}

// lastLine is the program's error.
func lastLine(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	return lines[len(lines)-1]
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited three minutes for %s", what)
		}
	}
}

// tableOf returns the rows of a table in testdata, whose columns are separated by bars.
func tableOf(t *testing.T, name string, columns int) (rows [][]string) {
	t.Helper()
	for line := range strings.Lines(readFile(t, filepath.Join("testdata", name))) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		row := strings.SplitN(line+" ", " | ", columns)
		for i := range row {
			row[i] = strings.TrimSuffix(strings.TrimSpace(row[i]), " |")
		}
		rows = append(rows, append(row, make([]string, columns-len(row))...))
	}
	return rows
}
