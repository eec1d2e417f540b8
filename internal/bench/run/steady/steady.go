// Package steady says how far total RSS moved within a window of time. It reads nothing itself.
package steady

import (
	"time"

	"llmparity/internal/record"
)

// Totals are readings of all processes, by the method that read them.
type Totals map[string][]record.Total

// readings is how many a window needs at least.
const readings = 4

// Range is what one method read within a window.
type Range struct {
	Lowest, Highest int64
	Known           bool // enough was read, and no process came or went
	Read            bool // anything was: a browser on another machine is not
}

// Since returns the range since a time, and forgets what is older.
func (t Totals) Since(begin time.Time) (out Range) {
	for method, read := range t {
		for len(read) > 0 && read[0].Begin.Before(begin) {
			read = read[1:]
		}
		t[method] = read
		out.Read = out.Read || len(read) > 0
		if out.Known || len(read) < readings {
			continue
		}
		out.Lowest, out.Highest = read[0].RSS, 0
		for _, total := range read {
			out.Lowest, out.Highest = min(out.Lowest, total.RSS), max(out.Highest, total.RSS)
			if total.Processes != read[0].Processes {
				return Range{Read: true}
			}
		}
		out.Known = true
	}
	return out
}
