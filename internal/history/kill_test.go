//go:build unix

package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
)

// asWriter makes the test binary a program that adds to a store and names what it has added, until it is killed.
const asWriter = "LLMPARITY_TEST_WRITER"

func TestMain(m *testing.M) {
	if os.Getenv(asWriter) != "" {
		write(os.Args[1], os.Args[2], os.Args[3])
	}
	os.Exit(m.Run())
}

// write adds runs one by one, or merges another store.
func write(how, where, from string) {
	s := Open(where)
	if how == "merge" {
		added, there, err := s.Merge(context.Background(), Open(from))
		fmt.Println("merged", added, there, err)
		select {}
	}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for day := 0; ; day++ {
		run := made(day%1000, 20, 50, r)
		if _, err := s.Add(context.Background(), run); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		fmt.Println(run.ID)
	}
}

// TestKilledWritersLoseNothing kills writers and their git at random moments, in a folder and in a branch. What they
// said they had added is there and whole, what is there can be read, and a killed merge can be repeated.
func TestKilledWritersLoseNothing(t *testing.T) {
	t.Cleanup(child.Sweep) // folders that the killed ones left
	times := 2
	if check.Slow {
		times = 200
	}
	t.Chdir(repository(t))
	from := filled(t, filepath.Join(t.TempDir(), "from"), 60, constant(20), nil, nil)
	for _, how := range []string{"add", "merge"} {
		for _, branch := range []bool{false, true} {
			t.Run(fmt.Sprint(how, " into a branch ", branch), func(t *testing.T) {
				added := 0
				for i := range times {
					where := filepath.Join(t.TempDir(), "store")
					if branch {
						where = fmt.Sprint(OfBranch, how, i)
					}
					c := exec.Command(os.Args[0], how, where, from.Where)
					c.Env = append(os.Environ(), asWriter+"=1")
					said := check.Killed(t, c, 20*time.Millisecond, 320*time.Millisecond)
					added += stillThere(t, Open(where), said)
					if how == "merge" && (!branch || check.Slow && i%20 == 0) { // git takes seconds for sixty files
						again(t, Open(where), from)
					}
				}
				t.Logf("%d runs were added by %d killed writers", added, times)
				if check.Slow && added < times/2 {
					t.Error("writers were killed before they did anything")
				}
			})
		}
	}
}

// stillThere checks that a store has all that a killed writer said, and returns how much it has.
func stillThere(t *testing.T, s *Store, said []string) int {
	t.Helper()
	l, err := s.Read(t.Context())
	check.Err(t, err)
	if len(l.Broken) > 0 {
		t.Errorf("broken: %v", l.Broken)
	}
	for _, id := range said {
		if !strings.HasPrefix(id, "merged") && l.Run(id) == nil {
			t.Errorf("%s is lost", id)
		}
	}
	return len(l.Runs)
}

// again repeats a killed merge. A killed git may have left a lock, which the error names.
func again(t *testing.T, s, from *Store) {
	t.Helper()
	_, _, err := s.Merge(t.Context(), from)
	if err != nil {
		t.Log(err)
		_, lock, named := strings.Cut(err.Error(), "rm ")
		if !named {
			t.Fatal(err)
		}
		check.Err(t, os.Remove(strings.TrimSpace(lock)))
		_, _, err = s.Merge(t.Context(), from)
	}
	check.Err(t, err)
	if l, err := s.Read(t.Context()); err != nil || len(l.Runs) != 60 {
		t.Errorf("merged again, it has %d runs: %v", len(l.Runs), err)
	}
}

// TestLocksAreNamed leaves a branch's lock as a killed git does: the error is one line with the command that helps.
func TestLocksAreNamed(t *testing.T) {
	dir := repository(t)
	t.Chdir(dir)
	s := Open(OfBranch + "numbers")
	r := made(1, 20, 50, rand.New(rand.NewPCG(1, 1)))
	lock := filepath.Join(dir, ".git", "refs", "heads", "numbers.lock")
	check.Err(t, os.WriteFile(lock, nil, 0o600))
	_, err := s.Add(t.Context(), r)
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatalf("with a lock: %v", err)
	}
	check.Has(t, err.Error(), "branch numbers is locked by", "rm "+lock)
	check.Err(t, os.Remove(lock))
	if added, err := s.Add(t.Context(), r); err != nil || !added {
		t.Errorf("without the lock: %v", err)
	}
}
