package browser

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"llmparity/browser/chrome"
	"llmparity/browser/serve"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/host/sample/truth"
	"llmparity/internal/kit/check"
)

func TestMain(m *testing.M) {
	if os.Getenv(takesMemory) != "" {
		if err := truth.Allocate(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	childtest.Browsers(m, endShared)
}

// stub is a minimal engine script: this package's tests need no engine.
const stub = `
import { host } from "../host.js";
let stopped;
export async function generate({ tokens }) {
	stopped = false;
	for (let i = 0; i < tokens && !stopped; i++) {
		host.token(i);
		for (const end = performance.now() + 2; performance.now() < end;); // a profile has something to sample
		await host.turn();
	}
	return { text: "said" };
}
export const interrupt = () => { stopped = true; };
`

// stubSite is the page with the stub as its engine.
var stubSite = Site{Title: "the stub", Imports: "nothing", Do: "mend it", Handler: http.HandlerFunc(
	func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/engine/engine.js" {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, stub)
			return
		}
		serve.Files(nil).ServeHTTP(w, r)
	})}

// fresh opens the stub in a new browser.
func fresh(t *testing.T, c Config) (*Page, *enginetest.Probe) {
	t.Helper()
	probe := &enginetest.Probe{}
	p, err := Open(watched(t), c, stubSite, probe)
	check.Err(t, err)
	t.Cleanup(func() {
		check.Also(t, p.Close())
	})
	check.Err(t, p.Measure(watched(t), probe))
	return p, probe
}

// on returns the page's tab in Chrome.
func on(p *Page) *chrome.Tab { return p.tab.(*chrome.Tab) }

// watched returns a context with a watchdog.
func watched(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// kill kills the processes of a role.
func kill(t *testing.T, p *Page, role string) {
	t.Helper()
	roles, err := p.Roles(watched(t))
	check.Err(t, err)
	for pid, r := range roles {
		if r == role {
			check.Also(t, check.Kill(pid))
		}
	}
}

func oneLine(err error) bool { return err != nil && !strings.Contains(err.Error(), "\n") }
