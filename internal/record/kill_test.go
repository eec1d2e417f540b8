package record

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/check"
)

// asResumer makes the test binary run or resume a run of so many repetitions in a folder.
const asResumer, repetitions = "RECORD_TEST_RESUME", 25

func resumeOrBegin(root string) error {
	var w *Writer
	s, err := &State{}, error(nil)
	if dir := filepath.Join(root, "latest"); exists(dir) {
		if w, s, err = Reopen(dir); err != nil {
			return err
		}
		w.Resumed(Resumed{})
	} else if w, err = Create(root, Meta{Name: "killed", Started: time.Now()}, Environment{}, nil); err != nil {
		return err
	}
	if !s.Announced(1) {
		w.Cell(cell)
	}
	for n := 1; n <= repetitions; n++ {
		if !slices.ContainsFunc(s.Commits(1), func(a *Attempt) bool { return a.Repetition == n && a.Status == OK }) {
			write(w, n)
			fmt.Println(n)
		}
	}
	return w.Close(OK)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A run is killed again and again, and resumed each time. Acknowledged repetitions keep all their rows and are not
// repeated; in the end every repetition is there once.
func TestKilledRunKeepsWhatItAcknowledged(t *testing.T) {
	root := t.TempDir()
	latest := filepath.Join(root, "latest")
	random := rand.New(rand.NewPCG(7, 8))
	acknowledged := map[string]bool{}
	acknowledge := func(n string) {
		if acknowledged[n] {
			t.Errorf("repetition %s was measured twice", n)
		}
		acknowledged[n] = true
	}
	for ended := false; !ended; {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asResumer+"="+root)
		var complaints strings.Builder
		cmd.Stderr = &complaints
		out, err := cmd.StdoutPipe()
		check.Err(t, err)
		check.Err(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for range random.IntN(7) {
			if !lines.Scan() {
				break
			}
			acknowledge(lines.Text())
		}
		time.Sleep(time.Duration(random.IntN(8)) * time.Millisecond) // somewhere in the next
		_ = cmd.Process.Kill()                                       // it may have ended
		for lines.Scan() {
			acknowledge(lines.Text())
		}
		ended = cmd.Wait() == nil
		if complaints.Len() > 0 {
			t.Fatalf("a resumed run ended with %s", &complaints)
		}
		if exists(latest) {
			survived(t, latest, acknowledged, ended)
		}
	}
}

// survived compares a record with what was acknowledged.
func survived(t *testing.T, dir string, acknowledged map[string]bool, ended bool) {
	t.Helper()
	r, err := Open(dir)
	check.Err(t, err)
	seen, at := map[string]bool{}, int64(0)
	for _, a := range r.Attempts {
		n := fmt.Sprint(a.Repetition)
		if !a.Counted() {
			if ended {
				t.Errorf("attempt %d of repetition %s does not count", a.ID, n)
			}
			continue
		}
		if seen[n] || len(a.Samples) != 2 || len(a.Metrics) != 2 || len(a.Totals) != 1 || len(a.Requests) != 1 ||
			len(a.Requests[0].Tokens) != 2 || a.BeginNS <= at {
			t.Errorf("attempt %d of repetition %s, begun at %d after %d: %+v", a.ID, n, a.BeginNS, at, a)
		}
		seen[n], at = true, a.EndNS
	}
	for n := range acknowledged {
		if !seen[n] {
			t.Errorf("repetition %s was acknowledged and is missing", n)
		}
	}
	if ended != (r.Status == OK) || len(r.Cells) > 1 || ended && len(seen) != repetitions {
		t.Errorf("ended %v: status %s, %d repetitions, %d cells", ended, r.Status, len(seen), len(r.Cells))
	}
}
