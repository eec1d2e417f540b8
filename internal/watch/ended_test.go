package watch

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"llmparity/internal/check"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
)

// mortal is a source whose process can end.
type mortal struct {
	rss, pss int64
	ended    bool
}

func (*mortal) Describe() record.Source { return record.Source{} }

func (m *mortal) Read(_ context.Context, r *record.Sample) error {
	if m.ended {
		return sample.ErrGone
	}
	r.Begin = time.Now()
	r.RSS, r.VMS, r.PSS, r.End = m.rss, 2*m.rss, m.pss, time.Now()
	return nil
}

// watching returns a watcher without processes.
func watching(t *testing.T, out io.Writer, say func(string)) *watcher {
	w := &watcher{o: Options{Rows: To(out, "l"), Say: say}, family: proc.NewFamily(), said: map[string]bool{},
		expensive: newExpensive(time.Nanosecond, time.Nanosecond), pss: record.Absent, began: time.Now()}
	w.sum.PeakPSS = record.Absent
	t.Cleanup(w.family.Close)
	return w
}

func TestUnreadableProcessIsReportedOnce(t *testing.T) {
	var out bytes.Buffer
	var said []string
	w := watching(t, &out, func(line string) { said = append(said, line) })
	self, err := proc.Look(os.Getpid())
	check.Err(t, err)
	for range 2 {
		w.welcome(&proc.Member{Process: self, Err: fs.ErrPermission})
	}
	w.welcome(&proc.Member{Process: self, Sources: []sample.Source{&mortal{rss: 8 * record.MiB, pss: record.Absent}}})
	check.Err(t, w.sample())
	if n := strings.Count(strings.Join(said, "\n"), "no permission to read"); n != 1 {
		t.Errorf("said %d times: %q", n, said)
	}
	if rows := strings.Count(out.String(), "\n") - 1; rows != 1 || len(w.alive) != 3 || w.sum.Processes != 3 {
		t.Errorf("%d rows of %d processes, %d alive", rows, w.sum.Processes, len(w.alive))
	}
}

// PSS that was read after the last sample counts for the peak, but has no row.
func TestEndedProcessHasNoRow(t *testing.T) {
	var out bytes.Buffer
	cheap := &mortal{rss: 8 * record.MiB, pss: record.Absent}
	w := watching(t, &out, func(string) {})
	w.alive = []*process{{Member: &proc.Member{Process: proc.Process{PID: 1 << 30, Name: "mortal"}}, cheap: cheap,
		expensive: &mortal{rss: record.Absent, pss: 5 * record.MiB}}}
	for w.sum.Samples < 9 && !w.expensive.busy {
		check.Err(t, w.sample())
	}
	w.expensive.wg.Wait() // PSS was read
	cheap.ended = true
	check.Err(t, w.sample())
	check.Err(t, w.finish())
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
	if len(rows) != w.sum.Samples || w.sum.Rows != len(rows) || len(w.alive) != 0 {
		t.Errorf("%d rows of %d samples, %d by the summary, %d alive", len(rows), w.sum.Samples, w.sum.Rows,
			len(w.alive))
	}
	for _, row := range rows {
		if fields := strings.Split(row, ","); fields[3] != "8.0000" || fields[4] != "16.0000" || fields[5] != "" {
			t.Errorf("row %s", row)
		}
	}
	if w.sum.PeakPSS != 5*record.MiB {
		t.Errorf("peak PSS %d", w.sum.PeakPSS)
	}
}
