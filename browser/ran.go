package browser

import (
	"context"
	"fmt"
	"strings"
	"time"

	"llmparity/internal/host/sample/proc"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// What an engine in a page can compute with.
const (
	WebGPU = "webgpu"
	WASM   = "wasm" // on the CPU
)

// Got reports what the engine got of what the plan asks for. The runner fails a launch that got less, unless the plan
// allows it.
func (p *Page) Got(rows ...ran.Row) {
	if len(rows) > 0 && p.probe != nil {
		p.probe.Event(record.Event{At: time.Now(), Ran: rows})
	}
}

// granted reports what is known of the model after the load.
func (s *Session) granted(ctx context.Context) error {
	rows := s.offer.Got
	if asked := s.offer.Threads; asked > 1 {
		shared, err := Call[bool](ctx, s.Page, "llmparity.shares()")
		if err != nil {
			return err
		}
		if !shared { // otherwise the engine knows better
			rows = append(rows, ran.With(ran.Threads, asked, 1, "the page has no SharedArrayBuffer"))
		}
	}
	s.Got(rows...)
	return nil
}

// work is what has been computed so far.
type work struct {
	dispatches float64       // on WebGPU; negative: unknown
	gpu, page  time.Duration // CPU time of the GPU process and of the page's; negative: unknown
}

// computes watches the first generation with a model. The function that it returns reports what the engine computed
// with. That it reads takes some milliseconds, which do not matter in a warm-up.
func (s *Session) computes(ctx context.Context) (done func() error) {
	if s.judged || s.offer == nil || s.offer.Backend == "" {
		return func() error { return nil }
	}
	was, err := s.work(ctx)
	return func() error {
		if err != nil {
			return err
		}
		is, err := s.work(ctx)
		if err != nil {
			return err
		}
		s.judged = true
		s.Got(is.since(was).row(s.offer.Backend, s.Adapter.Class == record.SoftwareAdapter))
		return nil
	}
}

// work asks the page and the kernel.
func (s *Session) work(ctx context.Context) (work, error) {
	w := work{dispatches: -1, gpu: -1, page: -1}
	var err error
	if w.dispatches, err = Call[float64](ctx, s.Page, "llmparity.dispatches()"); err != nil {
		return w, fmt.Errorf("reading what WebGPU computed: %w", err)
	}
	roles, err := s.tab.Roles(ctx)
	if err != nil {
		return w, err
	}
	for pid, role := range roles {
		took, ok := proc.CPUTime(pid)
		switch {
		case !ok:
		case role == "gpu-process":
			w.gpu = took
		case pid == s.tab.Renderer():
			w.page = took
		}
	}
	return w, nil
}

// since is what was computed since an earlier reading.
func (w work) since(was work) work {
	out := work{-1, -1, -1}
	if w.dispatches >= 0 && was.dispatches >= 0 {
		out.dispatches = w.dispatches - was.dispatches
	}
	if w.gpu >= 0 && was.gpu >= 0 && w.page >= 0 && was.page >= 0 {
		out.gpu, out.page = w.gpu-was.gpu, w.page-was.page
	}
	return out
}

// least is the share of CPU time that the GPU process has at least while WebGPU computes on the CPU. It was 24 s of 25
// with WebGPU, and 0.00 s with WebAssembly.
const least = 0.2

// row says what computed. Dispatches count first. A thread of the engine's own may have some that the ledger does not
// see, but on a software adapter the GPU process computes them, in CPU time.
func (w work) row(asked string, software bool) ran.Row {
	got, said := "", []string{}
	if w.dispatches >= 0 {
		said = append(said, fmt.Sprintf("%.0f WebGPU dispatches", w.dispatches))
		got = WASM
	}
	if total := w.gpu + w.page; software && total > 0 {
		said = append(said, fmt.Sprintf("CPU time: GPU process %.2f s, page %.2f s", w.gpu.Seconds(), w.page.Seconds()))
		got = WASM
		if float64(w.gpu) > least*float64(total) {
			got = WebGPU
		}
	}
	if w.dispatches > 0 {
		got = WebGPU
	}
	if len(said) == 0 {
		said = []string{"neither dispatches nor CPU time could be read"}
	}
	return ran.As(ran.Backend, asked, got, "first generation: "+strings.Join(said, "; "))
}
