package transformersjs

import (
	"path"
	"strings"
	"testing"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// keeps returns an engine with a kind of storage, and what that has before a launch.
func keeps(t *testing.T, storage, stored string) *Engine {
	return made(t, Config{Settings: browser.Defaults()}, engine.Settings{Threads: 1, Storage: storage, Stored: stored})
}

// A launch finds what an earlier browser has stored, and downloads only the rest.
func TestStoredModels(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	const size = 4 * 426624 // of the weights
	all := map[string]bool{}
	for _, w := range []struct{ storage, stored string }{{record.NoStorage, ""}, {record.CacheAPI, ""},
		{record.CacheAPI, ran.StoredHalf}, {record.CacheAPI, ran.StoredFilled}} {
		t.Run(w.storage+" "+w.stored, func(t *testing.T) {
			s, found := enginetest.Stored(t, keeps(t, w.storage, w.stored), c)
			names, err := browser.Call[[]string](limited(t), s.(*browser.Session).Page,
				`performance.getEntriesByType("resource").filter(({ responseStatus }) => responseStatus === 200)
					.map(({ name }) => name).filter((name) => name.includes("/model/"))`)
			check.Err(t, err)
			fetched := map[string]bool{}
			for _, name := range names {
				fetched[path.Base(name)] = true
			}
			if w.stored == "" {
				all = fetched
			}
			right := map[string]bool{"": len(fetched) >= 4, ran.StoredHalf: len(fetched) > 0 && len(fetched) < len(all),
				ran.StoredFilled: len(fetched) == 0}
			if !right[w.stored] {
				t.Errorf("requested %v of %v", fetched, all)
			}
			kept := w.storage != record.NoStorage
			if found.In != w.storage || kept != (found.Files == len(all)) ||
				kept && (found.Disk < size || found.Reported < size) || (w.stored != "") != (found.Before > 0) {
				t.Errorf("the store of %v is %+v", all, found)
			}
		})
	}
}

// transformers.js goes on without a word where it cannot store a model. A plan that asks for it fails.
func TestQuota(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	for storage, class := range map[string]record.Class{record.CacheAPI: record.Quota, record.NoStorage: ""} {
		e := keeps(t, storage, "")
		check.Err(t, e.Prepare(limited(t), c.Model, func(string) {}))
		opened, _ := enginetest.Open(t, e)
		s := opened.(*browser.Session)
		check.Err(t, s.Limit(limited(t), 1<<20))
		err := s.Load(limited(t), c.Model)
		if class == "" {
			check.Err(t, err)
			continue
		}
		enginetest.OneLine(t, err, fault.Quota, class, "free space")
		if !strings.Contains(err.Error(), title) {
			t.Error(err)
		}
	}
}
