package estimate

import (
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/models/hfconfig"
)

// pagedSettings are the settings of a made-up runtime.
type pagedSettings struct {
	Page int // tokens
}

// pagedRuntime needs nothing but this and its place in runtimes.
var pagedRuntime = &Runtime{name: "paged", device: onlyGPU, rules: paged{}, kv: "f16",
	reserves: "%[1]s in pages × %[3]s",
	settings: []Setting{field(func(s *pagedSettings) *int { return &s.Page }, Setting{Flag: "page", Key: "page",
		Help: "tokens of a page (default 64)", Most: 1024, Or: 64, Less: 16, Advice: "smaller pages (--page 16)"})}}

type paged struct{ usual }

func (paged) cache(e *Estimate, c hfconfig.Cache) (reserved, used int64) {
	return padded(e.seen(c), int64(Own[pagedSettings](e.Setup).Page)), e.seen(c)
}

// A setting of a runtime is a flag, is checked, has a default, is read from records and written to them, and is
// recommended where it saves memory.
func TestRuntimeBringsItsSettings(t *testing.T) {
	runtimes = append([]*Runtime{pagedRuntime}, runtimes...)
	t.Cleanup(func() { runtimes = runtimes[1:] })
	m, program := config(t, "smollm2-135m"), engine.Program{Bytes: mib, Low: 1, High: 1, How: "said"}
	s := Setup{Engine: &engine.Memory{Name: "pager", Title: "Pager", Runtime: "paged", Program: program}, Context: 100,
		BatchSize: 512}
	perToken := int64(30 * 2 * 3 * 64 * 2)
	pages := func(s Setup) int64 { return of(t, m, s).Component(KVReserved).Best / perToken / 512 }
	if n := pages(s); n != 128 {
		t.Errorf("by default, %d tokens are reserved", n)
	}

	at := slices.IndexFunc(Settings(), func(o Setting) bool { return o.Flag == "page" })
	if at < 0 {
		t.Fatal("no flag")
	}
	given, flag := s, Flag{}
	flag.Setting, flag.Of = Settings()[at], &given
	if err := flag.Set("48"); err != nil || flag.String() != "48" || flag.Type() != "int" || pages(given) != 144 {
		t.Errorf("%v: %s %s, %d tokens", err, flag.Type(), flag, pages(given))
	}
	if flag.Set("many") == nil {
		t.Error("a word is taken for a number")
	}
	if pages(s) != 128 {
		t.Error("a flag of one setup changed another")
	}

	taken := s
	taken.Take(map[string]string{"page": "32"})
	if set := of(t, m, taken).Settings(); set["page"] != "32" || pages(taken) != 128 {
		t.Errorf("%v", set)
	}
	Change(&given, func(own *pagedSettings) { own.Page = 2000 })
	if _, err := Of(m, given); err == nil || !strings.Contains(err.Error(), "--page is 2000") {
		t.Errorf("%v", err)
	}

	e := of(t, m, s)
	need, _ := e.NeedAt(VRAM)
	advice := strings.Join(e.Risk(map[string]Room{VRAM: {Free: need.Best * 3 / 4}}).Recommendations, "; ")
	if !strings.Contains(advice, "smaller pages (--page 16)") {
		t.Errorf("%q", advice)
	}
}
