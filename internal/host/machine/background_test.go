package machine

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"llmparity/internal/record"
)

// stat returns a line of /proc/PID/stat.
func stat(pid int, name string, parent, user, system, reaped, start int) string {
	return fmt.Sprintf("%d (%s) S %d 1 1 0 -1 4194560 9 9 9 9 %d %d %d 0 20 0 1 0 %d 999 9 18446744073709551615%s",
		pid, name, parent, user, system, reaped, start, strings.Repeat(" 0", 27))
}

func TestBackgroundExcludesOurProcesses(t *testing.T) {
	earlier := tree(t, map[string]string{"proc/stat": "cpu  1000 0 500 90000 7 10 20 5 0 0\ncpu0 1 2 3",
		"proc/50/stat": stat(50, "llmparity", 1, 10, 0, 100, 5), "proc/51/stat": stat(51, "chrome", 50, 40, 0, 0, 6),
		"proc/60/stat": stat(60, "cc1plus (x) y", 1, 100, 0, 0, 7),
		"proc/61/stat": stat(61, "cc1plus (x) y", 1, 100, 0, 0, 7),
		"proc/9/stat":  stat(9, "kworker/u8:1-events", 2, 0, 10, 0, 1),
		"proc/70/stat": stat(70, "old", 1, 500, 0, 0, 3),
		"proc/80/stat": stat(80, "idle", 1, 3, 3, 0, 3)}).work()
	later := tree(t, map[string]string{"proc/stat": "cpu  1400 0 600 90000 7 10 20 45 0 0\n",
		// The chrome of before has ended, and we have waited for it: 60 of its 100 ticks are of this time.
		"proc/50/stat": stat(50, "llmparity", 1, 30, 0, 200, 5), "proc/52/stat": stat(52, "emcc", 50, 20, 0, 0, 8),
		"proc/53/stat": stat(53, "python3", 52, 10, 0, 0, 9),
		"proc/60/stat": stat(60, "cc1plus (x) y", 1, 200, 0, 0, 7),
		"proc/61/stat": stat(61, "cc1plus (x) y", 1, 150, 0, 0, 7),
		"proc/9/stat":  stat(9, "kworker/u8:1-events", 2, 0, 30, 0, 1),
		"proc/70/stat": stat(70, "new", 1, 10, 0, 0, 99),
		"proc/80/stat": stat(80, "idle", 1, 3, 3, 0, 3)}).work()
	later.at = earlier.at.Add(2 * time.Second)
	// 500 ticks were worked, of which 20 + 100 - 40 + 20 + 10 were ours.
	want := &record.Background{Seconds: 2, Cores: 1.95, Stolen: 0.2,
		Busiest: []record.BusyProcess{{Name: "cc1plus (x) y", Processes: 2, Cores: 0.75},
			{Name: "kworker", Processes: 1, Cores: 0.1}, {Name: "new", Processes: 1, Cores: 0.05}}}
	if got := later.since(earlier, 50); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := earlier.since(later, 50); got != nil {
		t.Errorf("backwards: %+v", got)
	}
	if got := tree(t, nil).work().since(tree(t, nil).work(), 1); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}
