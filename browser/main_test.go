package browser

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"llmparity/assets/page"
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
import { ledger } from "./ledger.js";
import { adapter } from "./adapter.js";
export async function start() {}
const now = () => performance.timeOrigin + performance.now();
const tell = (event) => llmparityEvent(JSON.stringify(event));
let stopped;
const generate = async ({ tokens }) => {
	stopped = false;
	for (let i = 0; i < tokens && !stopped; i++) {
		tell({ tokens: [i, now()], ledger: [...ledger.brief(), -1] });
		await new Promise((done) => setTimeout(done));
	}
	return "said";
};
globalThis.llmparity = { adapter, now, held: () => -1, generate, stop() { stopped = true; } };
`

// stubSite is the page with the stub as its engine.
var stubSite = Site{Title: "the stub", Imports: "nothing", Do: "mend it", Handler: http.HandlerFunc(
	func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/engine.js" {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, stub)
			return
		}
		Files(page.Files()).ServeHTTP(w, r)
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
