package browser

import (
	"context"

	"llmparity/browser/chrome"
	"llmparity/browser/driver"
	"llmparity/browser/find"
	"llmparity/browser/firefox"
	"llmparity/browser/hardware"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
)

// drives is how a kind of browser is driven.
type drives struct {
	name   string // for people
	is     func(path string) bool
	check  func(o driver.Options, chosen string) error // refuses settings that it lacks
	launch func(context.Context, string, driver.Options) (driver.Tab, error)
	ways   func(goos string) []hardware.Way // in which it may reach a GPU

	relay string // how the page passes on what its worker is asked; empty: it need not

	before int64 // memory of all its processes with a page that has no model yet; 0: what engines say

	foreseen bool // the features of its software adapter are known before it runs

	noAdapter, noSoftware string // advice if there is no adapter, and none that computes on the CPU; empty: the same
}

// drivers has every kind of browser. The first that knows a program drives it; Chrome has many relatives.
var drivers = []drives{
	{"Firefox", firefox.Is, firefox.Check, firefox.Launch, firefox.Ways, "relay", 540 << 20, false,
		"install Mesa's Vulkan drivers for --adapter lavapipe (Debian: apt install mesa-vulkan-drivers), or use Chrome", ""},
	{"Chrome", func(string) bool { return true }, chrome.Check, chrome.Launch, chrome.Ways, "", 0, true,
		"try --adapter swiftshader", "use a newer Chrome, which includes SwiftShader for WebGPU"},
}

// byHand drives the browser of a person who has opened llmparity's own page.
var byHand = drives{name: "The page", relay: "relay=calls",
	launch: func(ctx context.Context, _ string, o driver.Options) (driver.Tab, error) {
		return o.Hand.Tab(ctx, o)
	}, noAdapter: "choose an engine that computes in WebAssembly, such as wllama, or another browser"}

// drives returns what drives the configured browser, whose program is at path.
func (c Config) drives(path string) drives {
	if c.Launch.Hand != nil {
		return byHand
	}
	return driverOf(path)
}

// Foreseen reports whether what a software adapter can is known before the browser runs.
func (c Config) Foreseen() bool {
	path, err := c.Find()
	return err != nil || c.drives(path).foreseen
}

// Held is how an engine holds models in the chosen browser.
func (s *Settings) Held(m *engine.Memory) *engine.Memory {
	path, err := find.Chrome(s.Chrome)
	if before := driverOf(path).before; err == nil && before > 0 {
		other := *m
		other.Before = before
		return &other
	}
	return m
}

// driverOf returns what drives the program at path.
func driverOf(path string) drives {
	for _, d := range drivers {
		if d.is(path) {
			return d
		}
	}
	return drives{} // there is one for every path
}

// Firefox finds Firefox, for users who choose it.
func Firefox(ctx context.Context) engine.Part {
	path, err := find.Chrome("firefox")
	if err != nil {
		return engine.Part{Absent: true, Detail: "for --chrome firefox, install it (Debian: apt install firefox-esr)"}
	}
	p := engine.Version(ctx, fault.NoChrome, path, "--version")
	p.Detail = "for --chrome firefox"
	return p
}

// chosen returns what drives the browser that a user chose, by name or path.
func chosen(browser string) drives {
	if path, err := find.Chrome(browser); browser != "" && err == nil {
		return driverOf(path)
	}
	return driverOf(browser)
}
