//go:build unix

package history

import (
	"bufio"
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

// TestKilledWritersLoseNothing kills writers at random moments, in a folder and in a branch. What they said they had
// added is there and whole, what is there can be read, and a killed merge can be repeated.
func TestKilledWritersLoseNothing(t *testing.T) {
	t.Cleanup(child.Sweep) // folders that the killed ones left
	times := 6
	if check.Slow {
		times = 200
	}
	t.Chdir(repository(t))
	from := filled(t, filepath.Join(t.TempDir(), "from"), 60, constant(20), nil, nil)
	added := 0
	for i := range times {
		how := []string{"add", "merge", "branch"}[i%3]
		where := filepath.Join(t.TempDir(), "store")
		if how == "branch" {
			where = fmt.Sprint(OfBranch, "b", i)
		}
		c := exec.Command(os.Args[0], how, where, from.Where)
		c.Env = append(os.Environ(), asWriter+"=1")
		out, err := c.StdoutPipe()
		check.Err(t, err)
		check.Err(t, c.Start())
		kill := time.AfterFunc(time.Duration(20+rand.IntN(300))*time.Millisecond, func() { _ = c.Process.Kill() })
		var said []string
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			said = append(said, lines.Text())
		}
		_ = c.Wait()
		kill.Stop()
		s := Open(where)
		l, err := s.Read(t.Context())
		check.Err(t, err)
		if len(l.Broken) > 0 {
			t.Errorf("%s: broken %v", how, l.Broken)
		}
		for _, id := range said {
			if !strings.HasPrefix(id, "merged") && l.Run(id) == nil {
				t.Errorf("%s: %s is lost", how, id)
			}
		}
		added += len(l.Runs)
		if how == "merge" {
			_, _, err := s.Merge(t.Context(), from)
			check.Err(t, err)
			if l, err = s.Read(t.Context()); err != nil || len(l.Runs) != 60 {
				t.Errorf("merged again, it has %d runs: %v", len(l.Runs), err)
			}
		}
	}
	t.Logf("%d runs were added by %d killed writers", added, times)
	if added < times {
		t.Error("writers were killed before they did anything")
	}
}
