package browser

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"llmparity/assets/page"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/truth"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
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

// shared is for tests that leave nothing behind, like a new page in the same browser; nil: not open.
var shared *plain

// endShared closes that browser; the next user opens another.
func endShared() error {
	err := errors.Join(shared.close(), shared.complaint())
	shared = nil
	return err
}

// blank returns a newly opened plain page in a used browser.
func blank(t *testing.T) (*Page, *plain) {
	t.Helper()
	if shared == nil {
		opened, err := openPlain(context.Background(), Config{}) // outlives the test
		check.Err(t, err)
		shared = opened
	}
	p := shared.page
	ctx, cancel := engine.Within(on(p).Ctx, watched(t))
	defer cancel()
	check.Err(t, chromedp.Do(ctx, chromedp.Navigate(p.server.Base+"/"+page.Truth)))
	return p, shared
}

// takesMemory makes the test binary the process that allocates memory.
const takesMemory = "LLMPARITY_TEST_TAKES_MEMORY"

// took is the allocated size of every kind of memory.
const took = 64 << 20

// Memory of each kind is allocated separately, and every source sees what it claims.
func TestEverySourceSeesWhatItClaims(t *testing.T) { findTruth(t, took, 1) }

// Buffers that were destroyed without a later submit are still in the GPU process, but in no reading at rest.
func TestRestAwaitsDestroyedBuffers(t *testing.T) {
	p, err := openPlain(t.Context(), Config{})
	check.Err(t, err)
	defer func() { check.Err(t, errors.Join(p.close(), p.complaint())) }()
	p.call(t, "llmparity.prepare()")
	const kind, figure = "gpu-buffers-untouched", "gpu-process/RSS"
	p.Take(t, kind, took)
	p.GiveBack(t)
	before := p.Rest(t)[figure]
	p.Take(t, kind, took)
	p.call(t, "llmparity.drop()")
	if moved := p.Rest(t)[figure] - before; moved > took/truth.MiB/2 {
		t.Errorf("after buffers were destroyed, %s is %.1f MiB higher than before they were made", figure, moved)
	}
}

// A worker is a separate isolate, which the page's figures do not include.
func TestWorkerIsASeparateSource(t *testing.T) {
	p, probe := blank(t)
	old := len(probe.Attached())
	before := probe.Figures(t, MethodHeap, "page")
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
	check.Err(t, p.Attach(watched(t), probe)) // adds nothing
	mine := probe.Attached()[old:]
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
		got := enginetest.Read(t, enginetest.Source(t, mine, MethodHeap, "worker"))["backing_storage_bytes"]
		if math.Abs(got-took) > 1<<20 {
			t.Errorf("the worker's array buffers take %.0f bytes, want %d", got, took)
		}
	}
	after := probe.Figures(t, MethodHeap, "page")
	if moved := after["backing_storage_bytes"] - before["backing_storage_bytes"]; math.Abs(moved) > 1<<20 {
		t.Errorf("the page's array buffers grew by %.0f bytes", moved)
	}
	// Reading an ended worker is not an error.
	_, err = Call[any](watched(t), p, "worker.terminate()")
	check.Err(t, err)
	source := enginetest.Source(t, mine, MethodHeap, "worker")
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
