package watch

import (
	"bytes"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"llmparity/internal/check"
	"llmparity/internal/sample/proc"
)

func TestUnreadableProcessIsReportedOnce(t *testing.T) {
	var out bytes.Buffer
	var said []string
	w := &watcher{o: Options{Rows: To(&out, "l", Columns), Say: func(line string) { said = append(said, line) }},
		family: proc.NewFamily(), gpus: newGPUs(Options{}), said: map[string]bool{}}
	defer w.family.Close()
	self, err := proc.Look(os.Getpid())
	check.Err(t, err)
	for range 2 {
		w.welcome(&proc.Member{Process: self, Err: fs.ErrPermission})
	}
	check.Err(t, w.sample())
	if n := strings.Count(strings.Join(said, "\n"), "no permission to read"); n != 1 || out.Len() > 0 {
		t.Errorf("said %d times: %q; rows %q", n, said, &out)
	}
	if len(w.alive) != 2 || w.sum.Processes != 2 {
		t.Errorf("%d processes, %d alive", w.sum.Processes, len(w.alive))
	}
}

// The chart keeps a short peak, and its lines have the given width at most.
func TestChart(t *testing.T) {
	c := newChart(60, 4, 100_000_000)
	for i := range 5000 {
		p := Point{At: 100_000_000 * time.Duration(i), Processes: 1, RSS: 100 << 20, PSS: 50 << 20}
		if i == 1234 {
			p.RSS = 300 << 20
		}
		c.add(p)
	}
	lines := c.lines()
	if !strings.HasPrefix(lines[0], "300.0 MiB") || len(lines) != 6 ||
		!strings.Contains(lines[5], "RSS 100.0 MiB  PSS 50.0 MiB") {
		t.Errorf("%q", lines)
	}
	if strings.Count(lines[1], "░") != 1 || strings.Count(lines[4], "█") != len(c.rss) {
		t.Errorf("drawn wrongly:\n%s", strings.Join(lines, "\n"))
	}
	for _, l := range lines {
		if len([]rune(l)) > 60 {
			t.Errorf("%q", l)
		}
	}
}
