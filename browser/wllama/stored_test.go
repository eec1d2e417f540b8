package wllama

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// keeps returns an engine with a kind of storage, and what that has before a launch.
func keeps(storage, stored string) *Engine {
	e := with(WASM, 1)
	e.settings.Storage, e.settings.Stored = storage, stored
	return e
}

// A launch finds what an earlier browser has stored. wllama downloads a file anew whose download was interrupted.
func TestStoredModels(t *testing.T) {
	c := enginetest.Tiny(t, 8)[1]
	info, err := os.Stat(c.Model.Path)
	check.Err(t, err)
	size := info.Size()
	for _, w := range []struct {
		storage, stored string
		before, files   int // in the store; wllama describes the model's file in another one
		fetched         bool
	}{
		{record.NoStorage, "", 0, 0, true},
		{record.OPFS, "", 0, 2, true},
		{record.OPFS, ran.StoredHalf, 1, 2, true},
		{record.OPFS, ran.StoredFilled, 2, 2, false},
	} {
		t.Run(w.storage+" "+w.stored, func(t *testing.T) {
			s, found := enginetest.Stored(t, keeps(w.storage, w.stored), c)
			names, err := browser.Call[[]string](t.Context(), s.(*browser.Session).Page,
				`performance.getEntriesByType("resource").map(({ name }) => name)`)
			check.Err(t, err)
			if fetched := strings.Contains(strings.Join(names, " "), ".gguf"); fetched != w.fetched {
				t.Errorf("requested %v", names)
			}
			if found.In != w.storage || found.Before != w.before || found.Files != w.files ||
				w.files > 0 && found.Disk < size || w.files > w.before && found.Reported < size { // Chrome forgets it
				t.Errorf("the store of %d bytes is %+v", size, found)
			}
		})
	}
}

// A model that exceeds the page's quota is no other failure, and needs no storage.
func TestQuota(t *testing.T) {
	for storage, class := range map[string]record.Class{record.OPFS: record.Quota, record.NoStorage: ""} {
		s, _ := open(t, keeps(storage, ""))
		check.Err(t, s.Limit(t.Context(), 1<<20))
		err := s.Load(t.Context(), enginetest.TinyModel(t))
		if class == "" {
			check.Err(t, err)
			continue
		}
		enginetest.OneLine(t, err, fault.Quota, class, "free space")
	}
}

// What wllama lacks is refused before a browser starts.
func TestStorageIsRefused(t *testing.T) {
	for _, e := range []*Engine{keeps(record.IndexedDB, ""), keeps(record.NoStorage, ran.StoredHalf)} {
		err := e.Check(t.Context(), enginetest.TinyModel(t))
		enginetest.OneLine(t, err, fault.NotSupported, engine.ClassOf(err), "storage")
	}
}

// fills makes this program fill a browser's store with the model that it names, until it is interrupted.
const fills = "LLMPARITY_TEST_WLLAMA_FILLS"

func fill(path string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	m := models.Model{Path: path, Model: record.Model{Context: 256}}
	for ctx.Err() == nil {
		s, err := keeps(record.OPFS, ran.StoredFilled).OpenFor(ctx, m, &enginetest.Probe{})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// Interrupted or killed while a browser fills its store, we leave no process, and what a killed one leaves the next
// start removes.
func TestInterruptedFillLeavesNothing(t *testing.T) {
	m := enginetest.TinyModel(t)
	for _, how := range []os.Signal{os.Interrupt, syscall.SIGKILL} {
		t.Run(how.String(), func(t *testing.T) {
			program, err := os.Executable()
			check.Err(t, err)
			cmd := exec.Command(program, "-test.run", "^$")
			cmd.Env = append(os.Environ(), fills+"="+m.Path)
			check.Err(t, cmd.Start())
			pid := cmd.Process.Pid
			wait := func(what string, is func() bool) {
				for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("%s: %s, %v", what, child.Describe(child.Tagged(pid)), child.Scratches(pid))
					}
				}
			}
			wait("no browser", func() bool { return len(child.Tagged(pid)) > 3 && len(child.Scratches(pid)) > 1 })
			time.Sleep(time.Second) // the page loads
			check.Err(t, cmd.Process.Signal(how))
			_ = cmd.Wait() // it was interrupted
			wait("processes are left", func() bool { return len(child.Tagged(pid)) == 0 })
			if how == syscall.SIGKILL {
				child.Sweep()
			}
			if left := child.Scratches(pid); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
