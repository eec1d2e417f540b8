package watch_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"llmparity/internal/bench/watch"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is what watching wrote and reported.
type seen struct {
	rows []map[string]string
	mu   sync.Mutex
	said []string
	sum  watch.Summary
	err  error
}

func (s *seen) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, line)
}

func (s *seen) names() []string {
	var names []string
	for _, r := range s.rows {
		if !slices.Contains(names, r["name"]) {
			names = append(names, r["name"])
		}
	}
	return names
}

// run watches and parses the rows strictly.
func run(t *testing.T, o watch.Options) *seen {
	t.Helper()
	s := &seen{}
	var out bytes.Buffer
	o.Rows, o.Say = watch.To(&out, `a "label", with a comma`, watch.Columns), s.say
	if o.Interval == 0 {
		o.Interval = 20 * time.Millisecond
	}
	s.sum, s.err = watch.Run(t.Context(), o)
	s.rows = parse(t, out.String())
	if len(s.rows) != s.sum.Rows {
		t.Errorf("%d rows, %d by the summary", len(s.rows), s.sum.Rows)
	}
	return s
}

func parse(t *testing.T, text string) []map[string]string {
	t.Helper()
	if text == "" {
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		t.Error("the last row is incomplete")
	}
	in := csv.NewReader(strings.NewReader(text))
	all, err := in.ReadAll()
	check.Err(t, err)
	if got := strings.Join(all[0], ","); got != watch.Columns ||
		!strings.HasPrefix(got, "timestamp,label,pid,rss_mb,vms_mb,") {
		t.Errorf("columns %s", got)
	}
	var rows []map[string]string
	for _, fields := range all[1:] {
		row := map[string]string{}
		for i, column := range all[0] {
			row[column] = fields[i]
		}
		if _, err := time.Parse(time.RFC3339Nano, row["timestamp"]); err != nil {
			t.Error(err)
		}
		if age := row["pss_age_ms"]; strings.HasPrefix(age, "-") || (row["pss_mb"] == "") != (age == "") {
			t.Errorf("PSS %q, age %q ms", row["pss_mb"], age)
		}
		for _, column := range []string{"pid", "rss_mb", "vms_mb", "sample"} {
			if n, err := strconv.ParseFloat(row[column], 64); err != nil || n <= 0 {
				t.Errorf("%s %q", column, row[column])
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func command(t *testing.T, args ...string) *watch.Command {
	t.Helper()
	c, err := watch.Start(args, nil, io.Discard, io.Discard)
	check.Err(t, err)
	return c
}

func TestShortCommands(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
	}{{[]string{"sleep", "0.15"}, 0}, {[]string{"true"}, 0}, {[]string{"false"}, 1},
		{[]string{"sh", "-c", "exit 7"}, 7}, {[]string{"sh", "-c", "kill -KILL $$"}, 137},
		{[]string{"sh", "-c", "kill -TERM $$"}, 143}} {
		cmd := command(t, c.args...)
		s := run(t, watch.Options{Command: cmd, Interval: 100 * time.Millisecond})
		if s.err != nil || len(s.rows) == 0 || s.rows[0]["name"] != c.args[0] ||
			s.rows[0]["label"] != `a "label", with a comma` {
			t.Errorf("%v: %v, rows %v", c.args, s.err, s.rows)
		}
		if code, how := cmd.Exit(); code != c.code || how == "" {
			t.Errorf("%v: code %d (%s), want %d", c.args, code, how, c.code)
		}
	}
	if _, err := watch.Start([]string{"/nonexistent"}, nil, nil, nil); fault.Of(err) != fault.NothingToWatch {
		t.Errorf("missing command: %v", err)
	}
}

// pipe returns a pipe whose end is the end of the processes that read it.
func pipe(t *testing.T) (in, end *os.File) {
	t.Helper()
	in, end, err := os.Pipe()
	check.Err(t, err)
	t.Cleanup(func() {
		in.Close()
		end.Close()
	})
	return in, end
}

func TestFollowsProcessTree(t *testing.T) {
	in, end := pipe(t)
	c, err := watch.Start([]string{"sh", "-c",
		"exec 3<&0; sleep 600 & a=$!; (cat <&3; true) & tail -f /dev/null & cat; kill $a $!"}, in, io.Discard, io.Discard)
	check.Err(t, err)
	s := run(t, watch.Options{Command: c, PSS: 50 * time.Millisecond, Draw: func(p watch.Point) {
		if p.Processes == 6 && p.PSS > 0 {
			end.Close()
		}
	}})
	for _, want := range []string{"sh", "sleep", "tail", "cat"} {
		if !slices.Contains(s.names(), want) {
			t.Errorf("no rows of %s: %v", want, s.names())
		}
	}
	if s.sum.Processes < 6 || s.sum.Why != "the last process ended" {
		t.Errorf("%+v", s.sum)
	}
	if s.sum.PeakPSS <= 0 || s.sum.PeakPSS > s.sum.PeakRSS {
		t.Errorf("peak PSS %d, RSS %d", s.sum.PeakPSS, s.sum.PeakRSS)
	}
	if !slices.ContainsFunc(s.rows, func(r map[string]string) bool {
		return r["pss_mb"] != "" && r["uss_mb"] != "" &&
			r["pss_age_ms"] != ""
	}) {
		t.Error("no row has a PSS")
	}
}

// sleeper starts a process with a unique command line.
func sleeper(t *testing.T) (cmd *exec.Cmd, name string) {
	t.Helper()
	name = fmt.Sprintf("%d.%09d", 600+os.Getpid(), time.Now().Nanosecond())
	cmd = exec.Command("sleep", name)
	check.Err(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
	return cmd, name
}

func TestWatchByName(t *testing.T) {
	cmd, name := sleeper(t)
	o := watch.Options{Name: "SLEEP " + name, Draw: func(p watch.Point) {
		if p.At > 200*time.Millisecond {
			_ = cmd.Process.Kill()
		}
	}}
	s := run(t, o)
	if s.err != nil || len(s.rows) == 0 || s.sum.Processes != 1 || s.rows[0]["pid"] != strconv.Itoa(cmd.Process.Pid) {
		t.Errorf("%v, %+v, rows of %v", s.err, s.sum, s.names())
	}
}

func TestWatchByNameWaits(t *testing.T) {
	name := fmt.Sprintf("600.%09d", time.Now().UnixNano()%1e9)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	said := make(chan struct{})
	go func() {
		<-said
		_ = exec.CommandContext(ctx, "sleep", name).Run() // it is killed
	}()
	var once sync.Once
	sum, err := watch.Run(t.Context(), watch.Options{Name: name, Wait: 2 * time.Minute,
		Interval: 20 * time.Millisecond,
		Say:      func(string) { once.Do(func() { close(said) }) },
		Draw:     func(watch.Point) { end() }})
	if err != nil || sum.Processes == 0 || sum.Samples == 0 {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestNothingToWatch(t *testing.T) {
	ended := exec.Command("true")
	check.Err(t, ended.Run())
	for want, o := range map[string]watch.Options{
		`no process with "process that does not exist" in its name`: {Name: "process that does not exist"},
		fmt.Sprintf("process %d does not exist", ended.Process.Pid): {PIDs: []int{ended.Process.Pid}},
		// This program has the name in its own command line.
		"no process with": {Name: filepath.Base(os.Args[0])},
	} {
		s := run(t, o)
		if fault.Of(s.err) != fault.NothingToWatch || !strings.HasPrefix(s.err.Error(), want) {
			t.Errorf("%s: err = %v, rows of %v", want, s.err, s.names())
		}
	}
}

func TestLimits(t *testing.T) {
	cmd, _ := sleeper(t)
	for name, o := range map[string]watch.Options{
		"limit of 3 samples": {MaxSamples: 3},
		"limit of 150ms":     {Duration: 150 * time.Millisecond},
		"limit of 50ms":      {Duration: 50 * time.Millisecond, Interval: time.Hour},
	} {
		o.PIDs = []int{cmd.Process.Pid, cmd.Process.Pid} // duplicates count once
		s := run(t, o)
		if s.err != nil || s.sum.Why != name || o.MaxSamples > 0 && s.sum.Samples != o.MaxSamples ||
			s.sum.Processes != 1 || len(s.rows) != s.sum.Samples {
			t.Errorf("%s: %+v, %v", name, s.sum, s.err)
		}
	}
	c := command(t, "sleep", "0.3")
	s := run(t, watch.Options{Command: c, MaxSamples: 1})
	if code, _ := c.Exit(); code != 0 || s.sum.Samples != 1 {
		t.Errorf("command that outlives watching: code %d, %+v", code, s.sum)
	}
}

func TestTerminationEndsCommand(t *testing.T) {
	c := command(t, "sh", "-c", "trap '' TERM INT; sleep 600 & sleep 600; sleep 600")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := watch.Run(ctx, watch.Options{Command: c, Interval: 20 * time.Millisecond, Say: func(string) {},
		Draw: func(p watch.Point) {
			if p.Processes == 3 {
				cancel(fault.New(fault.Terminated, "", "terminated"))
			}
		}})
	if code, _ := c.Exit(); fault.Of(err) != fault.Terminated || code != 137 {
		t.Errorf("err = %v, the command's code is %d", err, code)
	}
}

func TestExistingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv")
	check.Err(t, os.WriteFile(path, []byte("precious"), 0o644))
	if _, err := watch.Create(path, "l", watch.Columns, false); fault.Of(err) != fault.Usage {
		t.Errorf("err = %v", err)
	}
	cmd, _ := sleeper(t)
	rows, err := watch.Create(path, "l", watch.Columns, true)
	check.Err(t, err)
	_, err = watch.Run(t.Context(), watch.Options{PIDs: []int{cmd.Process.Pid}, Interval: time.Millisecond,
		MaxSamples: 2, Rows: rows, Say: func(string) {}})
	check.Err(t, err)
	check.Err(t, rows.Close())
	text := check.Read(t, path)
	if n := len(parse(t, string(text))); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	fresh := filepath.Join(t.TempDir(), "new.csv")
	rows, err = watch.Create(fresh, "l", watch.Columns, false)
	check.Err(t, err)
	check.Err(t, rows.Close())
	if _, err := os.Stat(fresh); err == nil {
		t.Error("left an empty file")
	}
}

// The kernel knows the peak of a command that ends before the second sample.
func TestPeakOfShortCommand(t *testing.T) {
	s := run(t, watch.Options{Command: command(t, "dd", "if=/dev/zero", "of=/dev/null", "bs=100M", "count=1"),
		Interval: 10 * time.Second})
	if s.sum.CommandRSS < 100<<20 || s.sum.CommandRSS > 200<<20 ||
		!strings.Contains(strings.Join(s.sum.Lines(), "\n"), "(ru_maxrss): 10") {
		t.Errorf("%+v", s.sum)
	}
	s = run(t, watch.Options{Command: command(t, "true")})
	if s.sum.CommandRSS != record.Absent {
		t.Errorf("the command has this program's memory: %q", s.sum.Lines())
	}
}

// A newly forked process is a copy of its parent and has no rows until its exec. A busy machine may delay the exec
// beyond a sample, but hardly three times in a row.
func TestForkedCopiesHaveNoRows(t *testing.T) {
	var seen string
	for range 3 {
		c := command(t, "sh", "-c", "i=0; while [ $i -lt 400 ]; do i=$((i+1)); /bin/true; done; :")
		s := run(t, watch.Options{Command: c, Interval: 5 * time.Millisecond})
		doubles := 0
		for _, r := range s.rows {
			if r["name"] == "sh" && r["pid"] != strconv.Itoa(c.PID()) {
				doubles++
			}
		}
		if doubles <= len(s.rows)/50 {
			return
		}
		seen += fmt.Sprintf("; %d of %d rows are of copies", doubles, len(s.rows))
	}
	t.Error(seen[2:])
}

// Invalid UTF-8 and control characters reach neither rows nor the terminal.
func TestInvalidNames(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	check.Err(t, err)
	for _, name := range []string{"a日本語日本語", "esc\x1b[2J\x1b]0;x"} {
		path := filepath.Join(t.TempDir(), name)
		check.Err(t, os.Symlink(sleep, path))
		s := run(t, watch.Options{Command: command(t, path, "0.1")})
		if len(s.rows) == 0 || !utf8.ValidString(s.rows[0]["name"]) {
			t.Errorf("%q: %v", name, s.rows)
		}
		if said := strings.Join(s.said, "\n"); !utf8.ValidString(said) || strings.Contains(said, "\x1b") {
			t.Errorf("%q: %q", name, said)
		}
	}
}

func TestFullDiskEndsWatching(t *testing.T) {
	rows, err := watch.Create("/dev/full", "l", watch.Columns, false)
	check.Err(t, err)
	c := command(t, "sleep", "0.2")
	sum, err := watch.Run(t.Context(), watch.Options{Command: c, Interval: time.Millisecond, Rows: rows,
		Say: func(string) {}})
	if code, _ := c.Exit(); fault.Of(err) != fault.DiskFull || code != 0 || sum.Rows != 0 {
		t.Errorf("err = %v, the command's code is %d, %d rows", err, code, sum.Rows)
	}
	check.Also(t, rows.Close())
}
