package ship_test

import (
	"testing"

	"llmparity/compare/evidence"
	"llmparity/compare/ship"
	"llmparity/internal/figure"
	"llmparity/internal/stats"
)

// form is a form in an engine: its download and its peaks, which start at a median.
type form struct {
	name     string
	download int64
	peak     float64
	worse    *ship.Change // than the reference; nil: it scored no text
}

// rises is a change of perplexity with an interval, in percent.
func rises(lo, hi float64) *ship.Change {
	return &ship.Change{Share: (lo + hi) / 200, Windows: 16,
		Interval: &stats.Interval{Lo: lo / 100, Hi: hi / 100, Confidence: stats.Confidence}}
}

var reference = &ship.Change{Windows: 16, Interval: &stats.Interval{}}

func cellsOf(engine string, browser bool, from int, forms []form) (out []ship.Cell) {
	for i, f := range forms {
		peak := evidence.New(figure.PeakPSS)
		var launches []float64
		for n := range 6 {
			v := f.peak + float64(n)/10
			launches = append(launches, v)
			peak.Add(n+1, v)
		}
		peak.Summarise()
		out = append(out, ship.Cell{Index: from + i, Form: f.name, Key: f.name, Engine: engine, Browser: browser,
			DownloadB: f.download, Peak: peak, Launches: launches, Scored: f.worse != nil})
	}
	return out
}

// tableOf compares forms, the first of which is the reference, in one engine.
func tableOf(forms ...form) *ship.Table {
	return ship.New(cellsOf("llama.cpp", false, 0, forms), ship.Rules{Reference: forms[0].name, MinEffect: 0.01,
		Tolerance: ship.Tolerance, Change: func(base, now int) ship.Change {
			if base == 0 {
				return *forms[now].worse
			}
			return *rises(1, 2)
		}})
}

func TestChoice(t *testing.T) {
	f16, q8 := form{"f16", 269, 300, reference}, form{"Q8_0", 145, 176, rises(0, 0.2)}
	q4 := form{"Q4_K_M", 105, 139, rises(0.3, 0.9)}
	few := form{"Q8_0", 145, 176, &ship.Change{Share: 0.001, Windows: 4}}
	with := func(f form, change func(*form)) form { change(&f); return f }
	for name, c := range map[string]struct {
		forms []form
		want  string // the form; empty: none
		by    ship.By
		why   ship.Kept
		next  string
	}{
		"the smallest within the tolerance": {[]form{f16, q8, q4, {"Q4_0", 92, 127, rises(1.4, 2.8)}}, "Q4_K_M",
			ship.MemoryQuality, "", "Q4_0"},
		"an interval above the tolerance in part": {[]form{f16, q8, {"Q4_K_M", 105, 139, rises(0.3, 1.1)}}, "Q8_0",
			ship.MemoryQuality, "", "Q4_K_M"},
		"only undecided": {[]form{f16, {"Q4_K_M", 105, 139, rises(0.3, 1.1)}}, "", "", ship.Undecided, ""},
		"undecided, but larger": {[]form{with(q4, func(f *form) { f.worse = reference }),
			{"Q8_0", 145, 176, rises(0.3, 1.1)}, {"Q4_0", 92, 127, rises(1.4, 2.8)}}, "Q4_K_M",
			ship.OnlyQuality, "", "Q4_0"},
		"too few windows": {[]form{f16, few}, "", "", ship.TooFew, ""},
		"all lose":        {[]form{f16, {"Q4_0", 92, 127, rises(1.4, 2.8)}}, "f16", ship.OnlyQuality, "", "Q4_0"},
		"no smaller form": {[]form{q8, {"f32", 500, 600, rises(1.4, 2.8)}}, "", "", ship.No, ""},
		"the same memory": {[]form{f16, q8, with(q4, func(f *form) { f.peak = q8.peak })}, "Q4_K_M",
			ship.DownloadQuality, "", ""},
		"a small download that needs more memory": {[]form{f16, q4, {"Q4_0", 92, 160, rises(0, 0.5)}}, "Q4_K_M",
			ship.MemoryQuality, "", "Q4_0"},
		"no quality": {[]form{with(f16, func(f *form) { f.worse = nil }), with(q4, func(f *form) { f.worse = nil })},
			"Q4_K_M", ship.OnlyMemory, "", ""},
		"nothing differs": {[]form{{"a", 100, 50, nil}, {"b", 100, 50, nil}}, "", "", "", ""},
	} {
		of := tableOf(c.forms...)
		got, next := "", ""
		if of.Choice.Form >= 0 {
			got = of.Forms[of.Choice.Form].Name
		}
		if of.Choice.Next != nil {
			next = of.Forms[of.Choice.Next.Form].Name
		}
		if got != c.want || of.Choice.By != c.by || of.Choice.Why != c.why || next != c.next {
			t.Errorf("%s: %q by %q, why none %q, next %q, want %q by %q, %q, %q", name, got, of.Choice.By,
				of.Choice.Why, next, c.want, c.by, c.why, c.next)
		}
	}
}

// What a browser needs decides, whatever a native engine needs.
func TestTheBrowserDecides(t *testing.T) {
	native := []form{{"Q8_0", 145, 176, nil}, {"Q4_0", 92, 127, nil}}
	web := []form{{"Q8_0", 145, 381, nil}, {"Q4_0", 92, 430, nil}}
	of := ship.New(append(cellsOf("llama.cpp", false, 0, native), cellsOf("WebLLM", true, 2, web)...),
		ship.Rules{Reference: "Q8_0", MinEffect: 0.01})
	if e := of.Engines[of.By]; !e.Browser || of.Forms[of.Choice.Form].Name != "Q8_0" {
		t.Errorf("decided by %s: %s", e.Name, of.Forms[of.Choice.Form].Name)
	}
	if q4 := of.Forms[1]; q4.Name != "Q4_0" || q4.Cells[0] != 3 || q4.Cells[1] != 1 {
		t.Errorf("cells of Q4_0: %+v", q4)
	}
}

// Too few launches see no difference in memory, so the download decides.
func TestFewLaunchesDecideNothing(t *testing.T) {
	cells := cellsOf("llama.cpp", false, 0, []form{{"Q8_0", 145, 176, nil}, {"Q4_0", 92, 177, nil}})
	for i := range cells {
		cells[i].Launches = cells[i].Launches[:3]
	}
	of := ship.New(cells, ship.Rules{Reference: "Q8_0", MinEffect: 0.01})
	if of.Choice.By != ship.OnlyDownload || of.Forms[of.Choice.Form].Name != "Q4_0" {
		t.Errorf("%+v", of.Choice)
	}
}

func TestOneFormHasNoTable(t *testing.T) {
	if of := ship.New(cellsOf("a", false, 0, []form{{"Q8_0", 1, 1, nil}}), ship.Rules{}); of != nil {
		t.Errorf("%+v", of)
	}
}
