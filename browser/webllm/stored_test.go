package webllm

import (
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// requested are the names of the model's files that the page has asked for.
type requested struct {
	mu    sync.Mutex
	names []string
}

func (r *requested) between(w http.ResponseWriter, q *http.Request, next http.Handler) {
	if strings.Contains(q.URL.Path, "/model/") || strings.HasSuffix(q.URL.Path, "/library.wasm") {
		r.mu.Lock()
		r.names = append(r.names, path.Base(q.URL.Path))
		r.mu.Unlock()
	}
	next.ServeHTTP(w, q)
}

func (r *requested) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.names = nil }()
	return slices.Compact(slices.Sorted(slices.Values(r.names)))
}

// A launch finds what an earlier browser has stored, downloads only the rest, and leaves nothing behind.
func TestStoredModels(t *testing.T) {
	for _, c := range []struct{ storage, stored string }{{record.CacheAPI, ran.StoredHalf},
		{record.IndexedDB, ran.StoredFilled}, {record.OPFS, ran.StoredFilled}} {
		if c.storage == record.IndexedDB && !check.Slow {
			continue
		}
		t.Run(c.storage+" "+c.stored, func(t *testing.T) { testStored(t, c.storage, c.stored) })
	}
}

func testStored(t *testing.T, storage, stored string) {
	w, probe, m, asked := packed(t, Config{}), &keeping{}, tinyModel(t), &requested{}
	w.settings.Storage, w.settings.Stored = storage, stored
	s, err := opened(watched(t), w, probe, answering(asked.between))
	check.Err(t, err)
	defer func() {
		check.Also(t, s.Close())
		for _, left := range child.Scratches(os.Getpid()) {
			if strings.Contains(left, "-store-") {
				t.Errorf("%s is left", left)
			}
		}
	}()
	all := asked.take()
	loads(t, s, m)
	again := asked.take()
	says(t, s, 2)
	t.Logf("first %v, then %v", all, again)
	if filled := stored == ran.StoredFilled; filled != (len(again) == 0) || len(again) >= len(all) || len(all) < 4 {
		t.Errorf("first %v were requested, then %v", all, again)
	}
	var found *ran.Store
	for _, e := range probe.Events() {
		if e.Store != nil {
			found = e.Store
		}
		for _, r := range e.Ran {
			if r.What == ran.Storage && (r.Missed || r.Got != storage) {
				t.Errorf("storage: %+v", r)
			}
		}
	}
	size := int64(paramBytes(t, files.pack.Dir))
	switch {
	case found == nil:
		t.Error("nothing is reported of the store")
	case found.In != storage || found.Before == 0 || found.Files < len(all) || found.Disk < size ||
		found.Reported < size:
		t.Errorf("the store of %d bytes of weights is %+v", size, *found)
	case stored == ran.StoredHalf && 2*found.Before != found.Files && 2*found.Before != found.Files+1:
		t.Errorf("half of %d files are %d", found.Files, found.Before)
	}
}
