//go:build unix

package foreign

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"llmparity/internal/history"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
)

// asImporter makes the test binary a program that imports a file.
const asImporter = "LLMPARITY_TEST_IMPORTER"

func TestMain(m *testing.M) {
	if os.Getenv(asImporter) != "" {
		err := Import(context.Background(), os.Stdout, history.Open(os.Args[1]), os.Args[2], Options{Machine: "mouse"})
		fmt.Println("ended", err)
		select {}
	}
	os.Exit(m.Run())
}

// TestKilledImportsLoseNothing kills imports of a history of 200 runs at random moments. What they said they had added
// is there and whole, and an import that is repeated adds the rest.
func TestKilledImportsLoseNothing(t *testing.T) {
	t.Cleanup(child.Sweep) // folders that the killed ones left
	const runs = 200
	var data bytes.Buffer
	data.WriteString(`window.BENCHMARK_DATA = {"entries": {"a": [`)
	for i := range runs {
		if i > 0 {
			data.WriteByte(',')
		}
		fmt.Fprintf(&data, `{"commit": {"id": "%040x", "timestamp": %q}, "benches": [{"name": "b", "unit": "ms", "value": %d}]}`, i,
			time.Unix(int64(i)*86400, 0).UTC().Format(time.RFC3339), i+1)
	}
	data.WriteString("]}};\n")
	from := filepath.Join(t.TempDir(), "data.js")
	check.Err(t, os.WriteFile(from, data.Bytes(), 0o600))
	t.Chdir(t.TempDir())
	if out, err := exec.Command("git", "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	times := 3
	if check.Slow {
		times = 200
	}
	added := 0
	for i := range times {
		where := filepath.Join(t.TempDir(), "store")
		if i%2 == 1 {
			where = fmt.Sprint(history.OfBranch, "b", i)
		}
		c := exec.Command(os.Args[0], where, from)
		c.Env = append(os.Environ(), asImporter+"=1")
		said := check.Killed(t, c, 20*time.Millisecond, 320*time.Millisecond)
		l, err := history.Open(where).Read(t.Context())
		check.Err(t, err)
		if len(l.Broken) > 0 {
			t.Errorf("broken: %v", l.Broken)
		}
		for _, line := range said {
			if id, _, ok := strings.Cut(strings.TrimPrefix(line, "Added "), ":"); ok && l.Run(id) == nil {
				t.Errorf("%s is lost", id)
			}
		}
		added += len(l.Runs)
		if i%2 == 0 {
			check.Err(t, Import(t.Context(), &bytes.Buffer{}, history.Open(where), from, Options{Machine: "mouse"}))
			if l, err = history.Open(where).Read(t.Context()); err != nil || len(l.Runs) != runs {
				t.Errorf("imported again, it has %d runs: %v", len(l.Runs), err)
			}
		}
	}
	t.Logf("%d runs were added by %d killed imports", added, times)
	if check.Slow && added < times/2 {
		t.Error("imports were killed before they did anything")
	}
}
