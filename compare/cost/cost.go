// Package cost takes apart what a browser costs: one library computes in a page and outside of it, on one processor,
// with one file and one number of threads. A build with no wider vectors than the page's tells the instruction set's
// share.
//
// It knows figures and their launches. Which cells are alike is up to package compare. What is left to the browser has
// the page's compiler and its version of the library in it, which no cell here tells apart.
package cost

import (
	"llmparity/compare/evidence"
	"llmparity/compare/ratio"
	"llmparity/internal/figure"
	"llmparity/internal/stats"
)

// Cell is a cell that computes with the library.
type Cell struct {
	Index    int // of the result
	Vector   int // bits of its widest vectors; 0: unknown
	Measured func(figure string) (evidence.Figure, []float64)
}

// Cost compares a page with a program outside of it.
type Cost struct {
	Library string `json:"library"` // what computes in both
	Browser int    `json:"browser"` // indexes of cells
	Native  int    `json:"native"`
	// Narrow is a native cell whose vectors are as wide as the page's; absent: there is none that differs from Native.
	Narrow *int `json:"native_narrow,omitempty"`
	// bits of the widest vectors; 0: unknown
	NativeVector  int   `json:"native_vector_bits"`
	BrowserVector int   `json:"browser_vector_bits"`
	Rows          []Row `json:"figures"`
}

// Row is one figure.
type Row struct {
	Figure string `json:"figure"`
	Title  string `json:"title"`
	// Whole is how many times as long, or as much, the page takes. It is Vectors times Rest.
	Whole Times `json:"browser_times"`
	// Vectors is the share of narrower vectors, and Rest that of the browser, its compiler and its version of the
	// library; nil: no native cell has vectors as narrow.
	Vectors *Times `json:"vectors_times,omitempty"`
	Rest    *Times `json:"rest_times,omitempty"`
}

// Times is a ratio of medians.
type Times struct {
	Times float64 `json:"times"`
	// Interval is a percentile bootstrap over launches; nil: too few launches.
	Interval *stats.Interval `json:"interval"`
}

// Inverse is the share that one side reaches of the other's rate.
func (t Times) Inverse() Times {
	out := Times{Times: 1 / t.Times}
	if i := t.Interval; i != nil {
		out.Interval = &stats.Interval{Lo: 1 / i.Hi, Hi: 1 / i.Lo, Confidence: i.Confidence}
	}
	return out
}

// figures are those in which a page differs because of how it computes. A rate is turned over.
var figures = []struct {
	name, title string
	rate        bool
}{
	{figure.DecodeTPS, "time of a decoded token", true},
	{figure.PrefillTPS, "time of a prompt token", true},
	{figure.TokenCPU, "CPU time of a decoded token", false},
}

// Of compares a page with the native cell of the widest vectors; nil: no figure is known on both sides. Natives has one
// cell or more.
func Of(library string, browser Cell, natives []Cell) *Cost {
	wide, narrow := natives[0], -1
	for at, n := range natives {
		if n.Vector > wide.Vector {
			wide = n
		}
		if n.Vector > 0 && n.Vector == browser.Vector {
			narrow = at
		}
	}
	c := &Cost{Library: library, Browser: browser.Index, Native: wide.Index,
		NativeVector: wide.Vector, BrowserVector: browser.Vector}
	apart := narrow >= 0 && natives[narrow].Index != wide.Index
	if apart {
		c.Narrow = &natives[narrow].Index
	}
	for _, f := range figures {
		whole := times(browser, wide, f.name, f.rate)
		if whole == nil {
			continue
		}
		row := Row{Figure: f.name, Title: f.title, Whole: *whole}
		if apart {
			row.Vectors = times(natives[narrow], wide, f.name, f.rate)
			row.Rest = times(browser, natives[narrow], f.name, f.rate)
		}
		c.Rows = append(c.Rows, row)
	}
	if len(c.Rows) == 0 {
		return nil
	}
	return c
}

// times is how many times as long, or as much, one cell takes as another; nil: unknown.
func times(one, other Cell, name string, rate bool) *Times {
	a, ofA := one.Measured(name)
	b, ofB := other.Measured(name)
	if rate {
		a, b, ofA, ofB = b, a, ofB, ofA
	}
	if !a.Known() || !b.Known() {
		return nil
	}
	r := ratio.New(a, b, stats.NewSides(ofA, ofB))
	if r.Ratio == nil {
		return nil
	}
	return &Times{*r.Ratio, r.Interval}
}
