package truth

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"llmparity/internal/host/child"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// inTwo is the suffix of kinds that two processes allocate.
const inTwo = "-in-two"

// Processes is the table of processes that allocate memory.
func Processes() Table {
	type wants = map[string]want
	touched := wants{anonymous: all, mapped: all, shared: all}
	t := Table{Title: "Processes", Kinds: []Kind{
		{ID: anonymous, Name: "malloc"},
		{ID: anonymous + untouched, Name: "malloc, untouched"},
		{ID: mapped, Name: "mapped file, read"},
		{ID: mapped + untouched, Name: "mapped file, untouched"},
		{ID: shared, Name: "shared memory"},
		{ID: mapped + inTwo, Name: "mapped file, read by two"},
		{ID: shared + inTwo, Name: "shared memory of two"},
	}}
	with := func(w want) wants {
		m := wants{mapped + inTwo: w, shared + inTwo: w}
		for k, v := range touched {
			m[k] = v
		}
		return m
	}
	reserved := with(all)
	reserved[anonymous+untouched], reserved[mapped+untouched] = all, all
	t.Rows = []Row{
		{ID: "process/USS", Who: "process", Figure: "USS", wants: with(none)},
		{ID: "process/PSS", Who: "process", Figure: "PSS", wants: with(between(0.5, 0.5))},
		{ID: "process/RSS", Who: "process", Figure: "RSS", wants: with(all)},
		{ID: "process/statm", Who: "process", Figure: "RSS by statm", wants: with(all)},
		{ID: "process/VMS", Who: "process", Figure: "VMS", wants: reserved},
		{ID: "both/USS", Who: "both processes", Figure: "USS", wants: with(none)},
		{ID: "both/PSS", Who: "both processes", Figure: "PSS", wants: with(all)},
		{ID: "both/RSS", Who: "both processes", Figure: "RSS", wants: with(between(2, 2))},
	}
	for i := range t.Rows {
		t.Rows[i].where = onLinux
	}
	return t
}

// InProcesses lets processes allocate size bytes of every kind, repeats times each, and reads all figures of engine
// processes before and after. command starts a program that only calls Allocate; its pipes and files are set here.
func InProcesses(t testing.TB, command func() *exec.Cmd, size int64, repeats int) Matrix {
	t.Helper()
	// The first file is filled: on some systems all holes share memory.
	file, err := os.Create(filepath.Join(t.TempDir(), "mapped"))
	check.Err(t, err)
	_, err = file.Write(bytes.Repeat([]byte{7}, int(size)))
	check.Err(t, err)
	memory, err := newShared(t.TempDir())
	check.Err(t, err)
	check.Err(t, memory.Truncate(size))
	t.Cleanup(func() { _, _ = file.Close(), memory.Close() })
	p := &pair{start(t, command(), file, memory), start(t, command(), file, memory)}
	return Measure(t, Processes(), p, Platform{OS: runtime.GOOS}, size, repeats)
}

// pair is two processes. The second allocates only shared memory.
type pair struct{ first, second *allocating }

// allocating is a process that allocates memory on request.
type allocating struct {
	orders  io.WriteCloser
	answers *bufio.Scanner
	words   bytes.Buffer // standard error
	sources []sample.Source
}

func start(t testing.TB, cmd *exec.Cmd, files ...*os.File) *allocating {
	t.Helper()
	a := &allocating{}
	var err error
	a.orders, err = cmd.StdinPipe()
	check.Err(t, err)
	out, err := cmd.StdoutPipe()
	check.Err(t, err)
	a.answers = bufio.NewScanner(out)
	cmd.Stderr, cmd.ExtraFiles = &a.words, files
	process, err := child.Start(t.Context(), cmd)
	check.Err(t, err)
	t.Cleanup(func() {
		for _, s := range a.sources {
			if c, ok := s.(io.Closer); ok {
				_ = c.Close() // read-only
			}
		}
		_ = a.orders.Close() // ends the process
		process.Stop(time.Second)
	})
	a.do(t, giveBack) // now it has executed its program, and has the memory for answering
	a.sources, err = proc.Sources(process.PID(), "process", false)
	check.Err(t, err)
	return a
}

// do sends an order and waits for the answer.
func (a *allocating) do(t testing.TB, order string) {
	t.Helper()
	_, err := io.WriteString(a.orders, order+"\n")
	if err != nil || !a.answers.Scan() || a.answers.Text() != done {
		t.Fatalf("the allocating process answers %q to %s (%v): %s", a.answers.Text(), order, err, &a.words)
	}
}

// Take lets the first process allocate memory, and the second if the kind is for two.
func (p *pair) Take(t testing.TB, kind string, bytes int64) {
	t.Helper()
	how, both := strings.CutSuffix(kind, inTwo)
	order := fmt.Sprintf("%s %d", how, bytes)
	if p.first.do(t, order); both {
		p.second.do(t, order)
	}
}

// GiveBack frees all memory.
func (p *pair) GiveBack(t testing.TB) {
	t.Helper()
	p.first.do(t, giveBack)
	p.second.do(t, giveBack)
}

// Others is empty: no other process shares this memory.
func (p *pair) Others() []int { return nil }

// Rest reads both processes until they are at rest, soon: they are idle.
func (p *pair) Rest(t testing.TB) Reading {
	t.Helper()
	return Rest(20*time.Millisecond, func() {}, func() Reading { return p.read(t) })
}

func (p *pair) read(t testing.TB) Reading {
	t.Helper()
	reading := Reading{}
	for _, a := range []*allocating{p.first, p.second} {
		for _, s := range a.sources {
			r := record.NewSample()
			check.Err(t, s.Read(t.Context(), &r))
			cheap := s.Describe().Method == record.MethodStatm
			for figure, v := range map[string]int64{"USS": r.USS, "PSS": r.PSS, "RSS": r.RSS, "VMS": r.VMS} {
				switch {
				case v == record.Absent:
				case cheap && a == p.first && figure == "RSS":
					reading["process/statm"] = float64(v) / MiB
				case !cheap:
					if a == p.first {
						reading["process/"+figure] = float64(v) / MiB
					}
					reading["both/"+figure] += float64(v) / MiB
				}
			}
		}
	}
	return reading
}
