package reports_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"llmparity/internal/check"
)

// finding is what axe found: a rule that elements break.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

// accessible runs axe over the page as it is: every rule, or only that of contrasts, which is all that a theme changes.
func (p *tab) accessible(t *testing.T, where string, everything bool) {
	t.Helper()
	if !ask[bool](t, p, `"axe" in window`) {
		axe, err := os.ReadFile("../assets/node_modules/axe-core/axe.min.js")
		if err != nil {
			t.Fatalf("no axe, which looks for what keeps people out; run make setup: %v", err)
		}
		check.Err(t, chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](string(axe)+";undefined")))
	}
	options := map[string]any{"resultTypes": []string{"violations"}}
	if !everything {
		options["runOnly"] = []string{"color-contrast"}
	}
	text, err := json.Marshal(options)
	check.Err(t, err)
	found := ask[[]finding](t, p, `(async () => {
		const found = (await axe.run(document, `+string(text)+`)).violations;
		return found.map((v) => ({ ID: v.id, Impact: v.impact || "", Help: v.help, Nodes: v.nodes.slice(0, 3).map((n) => ({ HTML: n.html.slice(0, 300), FailureSummary: n.failureSummary })) }));
	})()`)
	for _, f := range found {
		say := t.Logf
		if f.Impact == "serious" || f.Impact == "critical" {
			say = t.Errorf
		}
		for _, n := range f.Nodes {
			say("%s: %s (%s, %s): %s\n%s", where, f.Help, f.ID, f.Impact, n.HTML,
				strings.ReplaceAll(n.FailureSummary, "\n", " "))
		}
	}
}
