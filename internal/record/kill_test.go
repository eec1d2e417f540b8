package record_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/internal/record"
)

// asResumer makes the test binary carry out a run of repetitions in a folder, or go on with it, and end when all are
// there.
const asResumer, repetitions = "RECORD_TEST_RESUME", 25

func resumeOrBegin(root string) error {
	dir := filepath.Join(root, "latest")
	var done func(int) bool
	w, s, err := (*record.Writer)(nil), (*record.State)(nil), error(nil)
	if _, missing := os.Stat(dir); missing == nil {
		if w, s, err = record.Reopen(dir); err != nil {
			return err
		}
		w.Resumed(record.Resumed{})
		done = func(n int) bool {
			return slices.ContainsFunc(s.Commits(1), func(a *record.Attempt) bool {
				return a.Repetition == n && a.Status == record.OK
			})
		}
	} else {
		if w, err = record.Create(root, record.Meta{Name: "killed", Started: time.Now()}, record.Environment{},
			nil); err != nil {
			return err
		}
		done = func(int) bool { return false }
	}
	if s == nil || !s.Announced(1) {
		w.Cell(cell)
	}
	for n := 1; n <= repetitions; n++ {
		if !done(n) {
			write(w, n)
			fmt.Println(n)
		}
	}
	return w.Close(record.OK)
}

// A run is killed again and again, and resumed each time: in the end every repetition is there once, with all its rows,
// and what had been acknowledged was not made again.
func TestEveryRepetitionOfARunThatIsKilledAndResumedIsThereOnce(t *testing.T) {
	root := t.TempDir()
	random := rand.New(rand.NewPCG(7, 8))
	acknowledged, kills := map[int]int{}, 0
	for ended := false; !ended; {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asResumer+"="+root)
		var complaints strings.Builder
		cmd.Stderr = &complaints
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range random.IntN(7) {
			if !lines.Scan() {
				break
			}
			acknowledge(t, acknowledged, lines.Text())
		}
		time.Sleep(time.Duration(random.IntN(8)) * time.Millisecond) // somewhere in the next
		_ = cmd.Process.Kill()                                       // it may have ended
		for lines.Scan() {
			acknowledge(t, acknowledged, lines.Text())
		}
		err = cmd.Wait()
		ended = err == nil
		if complaints.Len() > 0 {
			t.Fatalf("a resumed run ended with %v: %s", err, &complaints)
		}
		kills++
	}
	r, err := record.Open(filepath.Join(root, "latest"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != record.OK || len(r.Attempts) != repetitions || len(r.Cells) != 1 {
		t.Errorf("status %s, %d attempts of %d, %d cells, behind %d launches", r.Status, len(r.Attempts), repetitions,
			len(r.Cells), kills)
	}
	seen, at := map[int]bool{}, int64(0)
	for _, a := range r.Attempts {
		if !a.Counted() || seen[a.Repetition] || len(a.Samples) != 2 || len(a.Metrics) != 2 || len(a.Totals) != 1 ||
			len(a.Requests) != 1 ||
			len(a.Requests[0].Tokens) != 2 || a.BeginNS <= at {
			t.Errorf("attempt %d of repetition %d: counted %v, %d samples, begun at %d behind %d", a.ID, a.Repetition,
				a.Counted(), len(a.Samples),
				a.BeginNS, at)
		}
		seen[a.Repetition], at = true, a.EndNS
	}
	for n, times := range acknowledged {
		if times > 1 || !seen[n] {
			t.Errorf("repetition %d was acknowledged %d times; in the record: %v", n, times, seen[n])
		}
	}
	t.Logf("%d launches, %d attempts were cut off", kills, len(r.Redone))
}

func acknowledge(t *testing.T, all map[int]int, line string) {
	t.Helper()
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("the child said %q", line)
	}
	all[n]++
}
