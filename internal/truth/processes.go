package truth

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
)

// inTwo is the suffix of kinds that two processes allocate.
const inTwo = "-in-two"

// Processes is the table of processes that allocate memory.
func Processes() Table {
	type wants = map[string]Want
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
	with := func(w Want) wants {
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
func InProcesses(ctx context.Context, command func() *exec.Cmd, size int64, repeats int) (_ Part, err error) {
	p, err := startPair(ctx, command, size)
	if err != nil {
		return Part{}, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	m, err := Measure(ctx, Processes(), p, Platform{OS: runtime.GOOS}, size, repeats)
	return Part{Matrix: m}, err
}

// pair is two processes. The second allocates only shared memory.
type pair struct {
	dir    string
	files  []*os.File
	first  *allocating
	second *allocating
}

var _ Subject = (*pair)(nil)

// allocating is a process that allocates memory on request.
type allocating struct {
	process *child.Process
	orders  io.WriteCloser
	answers *bufio.Scanner
	words   bytes.Buffer // standard error
	sources []sample.Source
}

func startPair(ctx context.Context, command func() *exec.Cmd, size int64) (_ *pair, err error) {
	p := &pair{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.dir, err = child.Scratch("truth"); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(p.dir, "mapped")
	if err != nil {
		return nil, fmt.Errorf("making a file to map: %w", err)
	}
	p.files = append(p.files, file)
	if err := fill(ctx, file, size); err != nil {
		return nil, err
	}
	memory, err := newShared(p.dir)
	if err != nil {
		return nil, err
	}
	p.files = append(p.files, memory)
	if err := memory.Truncate(size); err != nil {
		return nil, fmt.Errorf("making shared memory: %w", err)
	}
	if p.first, err = startAllocating(ctx, command(), p.files); err != nil {
		return nil, err
	}
	p.second, err = startAllocating(ctx, command(), p.files)
	return p, err
}

// fill fills a file. On some systems all holes share memory.
func fill(ctx context.Context, file *os.File, size int64) error {
	piece := bytes.Repeat([]byte{7}, MiB)
	for left := size; left > 0; left -= MiB {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := file.Write(piece[:min(left, MiB)]); err != nil {
			return fmt.Errorf("filling the file to map: %w", err)
		}
	}
	return nil
}

func startAllocating(ctx context.Context, cmd *exec.Cmd, files []*os.File) (*allocating, error) {
	a := &allocating{}
	var err error
	if a.orders, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting a process: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a process: %w", err)
	}
	a.answers = bufio.NewScanner(out)
	cmd.Stderr, cmd.ExtraFiles = &a.words, files
	if a.process, err = child.Start(ctx, cmd); err != nil {
		return nil, err
	}
	// After one answer it has executed its program, and has the memory for answering.
	if err = a.do(giveBack); err == nil {
		a.sources, err = proc.Sources(a.process.PID(), "process")
	}
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// do sends an order and waits for the answer.
func (a *allocating) do(order string) error {
	if _, err := io.WriteString(a.orders, order+"\n"); err != nil {
		return a.gone(err)
	}
	if !a.answers.Scan() {
		return a.gone(a.answers.Err())
	}
	if answer := a.answers.Text(); answer != done {
		return fmt.Errorf("unexpected answer %.80q of the allocating process", answer)
	}
	return nil
}

// gone returns the error of a process that does not answer.
func (a *allocating) gone(err error) error {
	a.process.Kill()
	err = fmt.Errorf("the allocating process ended: %w", cmp.Or(a.process.Err(), err, io.ErrUnexpectedEOF))
	if words := strings.TrimSpace(a.words.String()); words != "" {
		err = fmt.Errorf("%w: %s", err, words)
	}
	return err
}

// close ends the process.
func (a *allocating) close() error {
	if a == nil {
		return nil
	}
	for _, s := range a.sources {
		if c, ok := s.(io.Closer); ok {
			_ = c.Close() // read-only
		}
	}
	_ = a.orders.Close() // ends the process
	a.process.Stop(time.Second)
	return nil
}

func (p *pair) close() error {
	err := errors.Join(p.first.close(), p.second.close())
	for _, f := range p.files {
		_ = f.Close() // removed below
	}
	if p.dir != "" {
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	return err
}

// Take lets the first process allocate memory, and the second if the kind is for two.
func (p *pair) Take(_ context.Context, kind string, bytes int64) error {
	how, both := strings.CutSuffix(kind, inTwo)
	o := fmt.Sprintf("%s %d", how, bytes)
	if err := p.first.do(o); err != nil || !both {
		return err
	}
	return p.second.do(o)
}

// GiveBack frees all memory.
func (p *pair) GiveBack(context.Context) error {
	return errors.Join(p.first.do(giveBack), p.second.do(giveBack))
}

// Others is empty: no other process shares this memory.
func (p *pair) Others() []int { return nil }

// pairRest is short, because the processes are idle.
const pairRest = 20 * time.Millisecond

// Rest reads both processes until they are at rest.
func (p *pair) Rest(ctx context.Context) (Reading, error) {
	return Rest(ctx, pairRest, func() error { return nil }, func() (Reading, error) { return p.read(ctx) })
}

func (p *pair) read(ctx context.Context) (Reading, error) {
	reading := Reading{}
	for _, a := range []*allocating{p.first, p.second} {
		for _, s := range a.sources {
			r := record.NewSample()
			if err := s.Read(ctx, &r); err != nil {
				return nil, fmt.Errorf("reading a process by %s: %w", s.Describe().Method, err)
			}
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
	return reading, nil
}
