package watch

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
)

// mortal is a process's source that can be made to have ended.
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

// Its PSS is read after the last sample that finds it: the peak has it, and no row.
func TestAProcessThatHasEndedHasNoRow(t *testing.T) {
	var out bytes.Buffer
	quick := &mortal{rss: 8 * record.MiB, pss: record.Absent}
	w := &watcher{o: Options{Rows: To(&out, "l"), Say: func(string) {}}, family: proc.NewFamily(),
		expensive: newExpensive(time.Nanosecond, time.Nanosecond), pss: record.Absent, began: time.Now()}
	defer w.family.Close()
	w.sum.PeakPSS = record.Absent
	w.alive = []*process{{Member: &proc.Member{Process: proc.Process{PID: 1 << 30, Name: "mortal"}}, quick: quick,
		expensive: &mortal{rss: record.Absent, pss: 5 * record.MiB}}}
	for w.sum.Samples < 9 && !w.expensive.busy {
		if err := w.sample(); err != nil {
			t.Fatal(err)
		}
	}
	w.expensive.wg.Wait() // PSS was read
	quick.ended = true
	if err := w.sample(); err != nil {
		t.Fatal(err)
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
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
