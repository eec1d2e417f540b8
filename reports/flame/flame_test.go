package flame_test

import (
	"strings"
	"testing"
	"time"

	"llmparity/internal/depth"
	"llmparity/internal/kit/check"
	"llmparity/reports/flame"
)

func page(t *testing.T, stacks, before *depth.Stacks) string {
	t.Helper()
	var b strings.Builder
	check.Err(t, flame.Page("")(&b, "engine", stacks, before))
	return b.String()
}

// A comparison lists what changed, and nothing else; a name is no markup.
func TestPageListsChanges(t *testing.T) {
	stacks := func(slow int64) *depth.Stacks {
		return &depth.Stacks{Every: 10 * time.Millisecond, Generations: 2,
			Seen: map[string]int64{"main;loop;vector</script>": slow, "main;other": 300}}
	}
	text := page(t, stacks(100), stacks(10))
	check.Has(t, text, "<tr><td>vector&lt;/script&gt;<td>&#43;450 ms<td>main → loop", "less; grey: no change")
	if strings.Count(text, "<tr><td>") != 1 || strings.Contains(text, "vector</script>") {
		t.Error(text)
	}
	check.Has(t, page(t, stacks(10), stacks(10)), "No function changed beyond chance.")
	if text := page(t, stacks(10), nil); strings.Contains(text, "Changes") || strings.Contains(text, "Red:") {
		t.Error("a page without an earlier profile compares")
	}
}
