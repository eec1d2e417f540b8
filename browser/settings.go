package browser

import (
	"strings"
	"time"

	"llmparity/browser/find"
	"llmparity/browser/flags"
	"llmparity/internal/engine"
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
}

// Defaults returns the settings of who chooses nothing.
func Defaults() Settings { return Settings{Adapter: string(Auto), Thread: string(PageThread)} }

// Fields returns the settings for users.
func (s *Settings) Fields() []engine.Field {
	return []engine.Field{
		{To: &s.Chrome, Flag: "chrome", Place: true, Help: "browser: a path or " + strings.Join(find.Brands, ", ") +
			" (default: $LLMPARITY_CHROME, then Chrome, Chromium or Edge)"},
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

// Check refuses contradictory flags.
func (s *Settings) Check() error {
	if s.Adapter == string(Lavapipe) && s.Chrome+s.Launch.Attach != "" {
		return fault.New(fault.Usage, "omit --chrome and --attach", "--adapter lavapipe has a browser of its own")
	}
	return s.Launch.Check(s.Chrome)
}

// Browser is the browser to start or to attach to.
func (s *Settings) Browser(watchdog time.Duration) Config {
	return Config{Chrome: s.Chrome, Launch: s.Launch, Adapter: Adapter(s.Adapter), Power: s.Power,
		Thread: Thread(s.Thread), Watchdog: watchdog}
}

// Launch says which browser is used and how.
type Launch struct {
	Headed bool     // with a window, on a private display if there is none
	Attach string   // HOST:PORT or ws://… of a running browser; nothing is started
	Flags  []string // NAME[=VALUE]: flags in addition to ours
}

// Check refuses contradictory settings; chrome is the browser that the user chose.
func (l Launch) Check(chrome string) error {
	if l.Attach != "" {
		if _, err := find.Address(l.Attach); err != nil {
			return err
		}
		for _, f := range []struct {
			name  string
			given bool
		}{{"chrome", chrome != ""}, {"headed", l.Headed}, {"chrome-flag", len(l.Flags) > 0}} {
			if f.given {
				return fault.New(fault.Usage, "give only one",
					"--%s applies to a browser that llmparity starts, --attach to one that is running", f.name)
			}
		}
	}
	return flags.Check(l.Flags)
}
