package browser

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/chromedp"

	"llmparity/assets/page"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
)

// bare is a page with the ledger and without WebLLM, in a browser of its own, whose sources are attached.
func bare(t *testing.T) (*tab, *enginetest.Probe) {
	t.Helper()
	text, err := fs.ReadFile(page.Files(), "ledger.js")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{
		"index.html": {Data: []byte(`<!doctype html><title>bare</title><script type="module" src="bare.js"></script>`)},
		"bare.js":    {Data: []byte(`import "./ledger.js"; globalThis.llmparity = { started: Promise.resolve(), held: () => -1 };`)},
		"ledger.js":  {Data: text},
		"worker.js":  {Data: []byte(`import "./ledger.js"; onmessage = async ({ data }) => postMessage(await eval(data));`)},
	}
	server, err := serve(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.close(); err != nil {
			t.Error(err)
		}
	})
	path, err := FindChrome("")
	if err != nil {
		t.Fatal(err)
	}
	p, err := openTab(watched(t), path, Config{}, server, func(w record.Warning) { t.Errorf("%s: %s", w.Code, w.Text) })
	if err != nil {
		t.Fatal(err)
	}
	probe := &enginetest.Probe{}
	t.Cleanup(func() {
		p.processes.detach()
		if err := p.chrome.close(); err != nil {
			t.Error(err)
		}
	})
	p.clock = pageClock{anchor: time.Now()}
	for _, step := range []func(context.Context) error{
		p.findRenderer,
		func(ctx context.Context) error { return p.attach(ctx, probe) },
		func(ctx context.Context) error { return p.attachPage(ctx, probe) },
	} {
		if err := step(watched(t)); err != nil {
			t.Fatal(err)
		}
	}
	return p, probe
}

// collect makes the page collect all its garbage.
func collect(t *testing.T, p *tab) {
	t.Helper()
	ctx, cancel := p.within(watched(t))
	defer cancel()
	if _, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
}
