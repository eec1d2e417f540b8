package browser

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"llmparity/assets/page"
	"llmparity/internal/engine/enginetest"
)

// What takes long in a load is told by the stage that it belongs to: each of these is held up, by a time of its own.
func TestLoadStagesAreReported(t *testing.T) {
	c, m := tinyModel(t)
	path, err := FindChrome("")
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := page.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	server, err := serve(page.Files(), bundle)
	if err != nil {
		t.Fatal(err)
	}
	const library, weights, upload, shaders = 250 * time.Millisecond, 350 * time.Millisecond, 450 * time.Millisecond,
		550 * time.Millisecond
	end := interpose(t, server, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/library.wasm"):
			time.Sleep(library)
		case strings.Contains(r.URL.Path, "params_shard_"):
			time.Sleep(weights)
		}
		next.ServeHTTP(w, r)
	})
	defer end()
	probe := &enginetest.Probe{}
	s, err := New(c).open(watched(t), probe, server, path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// The first wait for the queue is an upload's; pipelines are what shaders are compiled to.
	_, err = call[any](watched(t), s.(*session).tab, `(() => {
		const hold = (prototype, name, ms) => {
			const original = prototype[name];
			prototype[name] = async function (...args) {
				prototype[name] = original;
				await new Promise((done) => setTimeout(done, ms));
				return original.apply(this, args);
			};
		};
		hold(GPUQueue.prototype, "onSubmittedWorkDone", 450);
		hold(GPUDevice.prototype, "createComputePipelineAsync", 550);
	})()`)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(watched(t), m); err != nil {
		t.Fatal(err)
	}
	took := map[string]time.Duration{}
	for _, span := range probe.Spans() {
		took[span.Name] = span.End.Sub(span.Begin)
	}
	t.Log(took)
	for name, least := range map[string]time.Duration{"fetch": library, "download": weights, "upload": upload,
		"shaders": shaders} {
		if took[name] < least {
			t.Errorf("%s took %v, and was held up for %v", name, took[name], least)
		}
	}
}
