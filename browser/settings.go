package browser

import (
	"runtime"
	"strings"
	"time"

	"llmparity/browser/chrome"
	"llmparity/browser/driver"
	"llmparity/browser/find"
	"llmparity/browser/firefox"
	"llmparity/internal/engine"
	"llmparity/internal/host/machine"
	"llmparity/internal/kit/fault"
)

// Settings are what users choose of the browser and the page, with every engine that runs there. An engine's
// configuration embeds them.
type Settings struct {
	Chrome  string
	Launch  Launch
	Adapter string
	Power   string // power preference; empty: as the engine asks
	Thread  string
	kernels bool
}

// Defaults returns the settings of who chooses nothing.
func Defaults() Settings { return Settings{Adapter: string(Auto), Thread: string(PageThread)} }

// Fields returns the settings for users.
func (s *Settings) Fields() []engine.Field {
	return []engine.Field{
		{To: &s.Chrome, Flag: "chrome", Key: "browser", Place: true, Help: "browser: a path or " +
			strings.Join(find.Brands, ", ") + " (default: $LLMPARITY_CHROME, then Chrome, Chromium or Edge)"},
		{To: &s.Launch.Headed, Flag: "headed", Place: true,
			Help: "show the browser's window; without a display, in a private Xvfb"},
		{To: &s.Launch.Attach, Flag: "attach", Place: true,
			Help: "open a tab in a running browser: HOST:PORT of its --remote-debugging-port, or ws://…"},
		{To: &s.Launch.Flags, Flag: "chrome-flag", Help: "flag for the browser, NAME or NAME=VALUE; repeatable"},
		{To: &s.Adapter, Flag: "adapter", Key: "adapter",
			OneOf: []string{string(Auto), string(GPU), string(SwiftShader), string(Lavapipe)},
			Help:  "WebGPU adapter: auto; gpu; swiftshader or lavapipe, which run on the CPU. Only lavapipe (scripts/setup lavapipe) has float16"},
		{To: &s.Power, Flag: "power-preference", Key: "power_preference",
			OneOf: []string{"high-performance", "low-power"},
			Help:  "which of several GPUs the page asks for: high-performance or low-power (default: the engine's choice)"},
		{To: &s.Thread, Flag: "thread", Key: "thread", Run: true,
			OneOf: []string{string(PageThread), string(WorkerThread)},
			Help:  "thread that the engine runs on: page or worker"},
	}
}

// ByHand makes the browser that of a person who has opened llmparity's own page.
func (s *Settings) ByHand(h driver.Hand) { s.Launch.Hand = h }

// Deepen has the page time WebGPU kernels. Timestamps are exact only with the browser's developer features.
func (s *Settings) Deepen() {
	s.kernels = true
	s.Launch.Flags = append(s.Launch.Flags, "enable-webgpu-developer-features")
}

// Check refuses contradictory flags.
func (s *Settings) Check() error {
	if s.Adapter == string(Lavapipe) && s.Chrome+s.Launch.Attach != "" && !firefox.Is(s.Chrome) {
		return fault.New(fault.Usage, "omit --chrome and --attach", "--adapter lavapipe has a browser of its own")
	}
	return chosen(s.Chrome).check(driver.Options{Launch: s.Launch, Adapter: Adapter(s.Adapter)}, s.Chrome)
}

// Adapters are the WebGPU adapters that a browser may have here; nil: that of the browser that was chosen.
func (s *Settings) Adapters() []string {
	if s.Chrome+s.Launch.Attach != "" {
		return nil
	}
	var out []string
	if machine.HasGPU() || runtime.GOOS != "linux" {
		out = append(out, string(GPU))
	}
	out = append(out, string(SwiftShader))
	if _, err := find.Lavapipe(); err == nil {
		out = append(out, string(Lavapipe))
	}
	return out
}

// Devices are settings with each of these adapters.
func (s *Settings) Devices() (out []engine.Section) {
	for _, name := range s.Adapters() {
		out = append(out, engine.Section{"adapter": name})
	}
	return out
}

// Backends are settings of an engine that computes in WebAssembly, or on WebGPU with each of these adapters.
func (s *Settings) Backends(wasm, webgpu string) []engine.Section {
	out := []engine.Section{{"backend": wasm}}
	for _, name := range s.Adapters() {
		out = append(out, engine.Section{"backend": webgpu, "adapter": name})
	}
	if len(out) == 1 {
		out = append(out, engine.Section{"backend": webgpu})
	}
	return out
}

// Browser is the browser to start or to attach to.
func (s *Settings) Browser(watchdog time.Duration) Config {
	return Config{Chrome: s.Chrome, Launch: s.Launch, Adapter: Adapter(s.Adapter), Power: s.Power,
		Thread: Thread(s.Thread), Watchdog: watchdog, Kernels: s.kernels}
}

// What package driver calls by these names.
type (
	Adapter = driver.Adapter
	Launch  = driver.Launch
	Thread  = driver.Thread
)

// ParseAdapter parses a user's choice; empty is Auto.
func ParseAdapter(s string) (Adapter, error) { return driver.ParseAdapter(s) }

// Methods of package chrome.
const (
	MethodPerformance = chrome.MethodPerformance
	MethodHeap        = chrome.MethodHeap
	MethodUserAgent   = chrome.MethodUserAgent
)

// The values of Adapter and Thread.
const (
	Auto, SwiftShader, Lavapipe, GPU = driver.Auto, driver.SwiftShader, driver.Lavapipe, driver.GPU
	PageThread, WorkerThread         = driver.PageThread, driver.WorkerThread
)
