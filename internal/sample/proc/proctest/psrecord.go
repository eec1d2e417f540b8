// Package proctest runs psrecord, which benchmarks compare with. `scripts/setup bench` installs it.
package proctest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/cache"
)

// Psrecord is an installed psrecord.
type Psrecord string

// Find finds psrecord; scripts is the folder of the setup script.
func Find(b testing.TB, scripts string) Psrecord {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(scripts, "bench", "requirements.txt"))
	if err != nil {
		b.Fatal(err)
	}
	key := fmt.Sprintf("%x", sha256.Sum256(text))[:12]
	path := filepath.Join(cache.Dir(os.Getenv), "python", key, "bin", "psrecord")
	if _, err := os.Stat(path); err != nil {
		b.Fatalf("no psrecord: run `scripts/setup bench` (%v)", err)
	}
	return Psrecord(path)
}

// Watch returns the CPU time of a whole run of psrecord on a process, and its samples. more are further arguments.
func (p Psrecord) Watch(b testing.TB, pid int, d time.Duration, more ...string) (cpu time.Duration, samples int) {
	b.Helper()
	log := filepath.Join(b.TempDir(), "log")
	cmd := exec.Command(string(p), append(
		[]string{fmt.Sprint(pid), "--duration", fmt.Sprint(d.Seconds()), "--log", log}, more...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("psrecord: %v\n%s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		b.Fatal(err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), max(1, strings.Count(string(text), "\n")-1)
}

// Median returns the median of the values, which it sorts.
func Median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
