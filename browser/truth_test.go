package browser

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"llmparity/assets/page"
	"llmparity/internal/check"
	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// complaint returns an error if the page warned.
func (p *plain) complaint() error {
	var err error
	if p != nil {
		for _, w := range p.Warnings() {
			err = errors.Join(err, fmt.Errorf("warning of the plain page: %s: %s", w.Code, w.Text))
		}
	}
	return err
}

// sharedPlain is for tests that leave nothing behind, like a new page in the same browser.
var sharedPlain struct {
	once  sync.Once
	plain *plain
	err   error
}

// endShared closes that browser; the next user opens another.
func endShared() error {
	s := &sharedPlain
	err := errors.Join(s.plain.close(), s.plain.complaint())
	s.once, s.plain = sync.Once{}, nil
	return err
}

// blank returns a newly opened plain page in a used browser.
func blank(t *testing.T) (*Page, *plain) {
	t.Helper()
	s := &sharedPlain
	s.once.Do(func() { s.plain, s.err = openPlain(context.Background(), Config{}) }) // outlives the test
	if s.err != nil {
		t.Fatal(s.err)
	}
	p := s.plain.page
	ctx, cancel := p.within(watched(t))
	defer cancel()
	check.Err(t, chromedp.Do(ctx, chromedp.Navigate(p.server.base+"/"+page.Truth)))
	return p, s.plain
}

// takesMemory makes the test binary the process that allocates memory.
const takesMemory = "LLMPARITY_TEST_TAKES_MEMORY"

// took is the allocated size of every kind of memory.
const took = 64 << 20

// Memory of each kind is allocated separately, and every source sees what it claims.
func TestEverySourceSeesWhatItClaims(t *testing.T) { findTruth(t, took, 1) }

// A worker is a separate isolate, which the page's figures do not include.
func TestWorkerIsASeparateSource(t *testing.T) {
	p, probe := blank(t)
	old := len(probe.Attached())
	before := figures(t, probe, MethodHeap, "page")
	ledger, err := Call[ledgerReading](watched(t), p, fmt.Sprintf(`new Promise((done) => {
		globalThis.worker = new Worker("truth-worker.js", { type: "module" });
		worker.onmessage = ({ data }) => done(data);
		worker.postMessage({ bytes: %[1]d, onGPU: %[1]d });
	})`, took))
	check.Err(t, err)
	if ledger.Figures["live_bytes"] != took || ledger.Figures["live_count"] != 1 {
		t.Errorf("the worker's ledger has %d bytes in %d objects, want %d in 1", ledger.Figures["live_bytes"], ledger.Figures["live_count"], took)
	}
	check.Err(t, p.Attach(watched(t), probe))
	if err := p.Attach(watched(t), probe); err != nil { // adds nothing
		t.Fatal(err)
	}
	mine := attached(probe.Attached()[old:])
	workers := 0
	for _, s := range mine {
		if s.Describe().Role == "worker" {
			workers++
		}
	}
	if workers != 1 {
		t.Errorf("%d sources read the worker, want 1", workers)
	}
	for range 3 { // reads are independent
		if got := figures(t, mine, MethodHeap, "worker")["backing_storage_bytes"]; math.Abs(got-took) > 1<<20 {
			t.Errorf("the worker's array buffers take %.0f bytes, want %d", got, took)
		}
	}
	after := figures(t, probe, MethodHeap, "page")
	if moved := after["backing_storage_bytes"] - before["backing_storage_bytes"]; math.Abs(moved) > 1<<20 {
		t.Errorf("the page's array buffers grew by %.0f bytes", moved)
	}
	// Reading an ended worker is not an error.
	if _, err := Call[any](watched(t), p, "worker.terminate()"); err != nil {
		t.Fatal(err)
	}
	source := sourceOf(t, mine, MethodHeap, "worker")
	for n := 0; ; n++ {
		// a read just before the end is never answered
		ctx, cancel := context.WithTimeout(watched(t), 3*time.Second)
		r := record.NewSample()
		err := source.Read(ctx, &r)
		cancel()
		if errors.Is(err, sample.ErrGone) {
			break
		}
		if n == 10 {
			t.Fatalf("reading an ended worker: %v, want %v", err, sample.ErrGone)
		}
	}
}

// attached are some of a probe's sources.
type attached []sample.Source

func (a attached) Attached() []sample.Source { return a }
