package browser

import (
	"slices"
	"strings"

	"github.com/chromedp/chromedp"

	"llmparity/browser/find"
	"llmparity/internal/kit/fault"
)

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
	for _, f := range l.Flags {
		if _, _, err := parseFlag(f); err != nil {
			return err
		}
	}
	return nil
}

// refused are flags that users cannot set, with the reason.
var refused = map[string]string{
	"user-data-dir":            "each launch has its own temporary profile",
	"remote-debugging-port":    "llmparity uses a pipe; to use a running browser, give --attach",
	"remote-debugging-address": "llmparity uses a pipe; to use a running browser, give --attach",
	"remote-debugging-pipe":    "llmparity uses a pipe already",
	"headless":                 "it is the default; for a window, give --headed",
	"use-webgpu-adapter":       "give --adapter instead",
	"no-startup-window":        "the page needs a window",
}

// parseFlag parses NAME[=VALUE], with or without dashes. Without =VALUE, the value is true.
func parseFlag(text string) (name string, value any, err error) {
	name, said, has := strings.Cut(strings.TrimLeft(text, "-"), "=")
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return "", nil, fault.New(fault.Usage, "write NAME or NAME=VALUE", "invalid --chrome-flag %q", text)
	}
	if why, ok := refused[name]; ok {
		return "", nil, fault.New(fault.Usage, why, "--chrome-flag %s is not allowed", name)
	}
	if ours := features[opposite[name]]; ours != nil {
		for _, f := range strings.Split(said, ",") {
			if slices.Contains(ours, f) {
				return "", nil, fault.New(fault.Usage, "omit it; measuring needs this setting",
					"--chrome-flag %s=%s contradicts llmparity's --%s=%s", name, f, opposite[name], f)
			}
		}
	}
	if !has && features[name] == nil {
		return name, true, nil
	}
	return name, said, nil
}

// features are the features that we switch, by flag. Chrome only uses the last flag of a name, so users' features are
// added to our list.
var features = map[string][]string{
	// Otherwise the trace that finds the page's process leaves a service process behind.
	"enable-features": {"NetworkService", "NetworkServiceInProcess", "TracingServiceInProcess"},
	// These take memory or processes independently of the page: spare renderers, cached pages, the address bar's own
	// page. The first two are chromedp's.
	"disable-features": {"Translate", "BlinkGenPropertyTrees", "SpareRendererForSitePerProcess", "BackForwardCache",
		"WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "OptimizationHints", "MediaRouter"},
	"enable-blink-features": {eagerMeasuring},
}

// opposite maps a list of features to the one that undoes it.
var opposite = map[string]string{
	"enable-features": "disable-features", "disable-features": "enable-features",
	"disable-blink-features": "enable-blink-features",
}

// flagOptions returns the adapter's flag and the user's.
func flagOptions(a Adapter, l Launch) (o []chromedp.ExecAllocatorOption, err error) {
	if a.Software() {
		// With developer features, lavapipe says its name.
		o = append(o, chromedp.Flag("use-webgpu-adapter", "swiftshader"),
			chromedp.Flag("enable-webgpu-developer-features", a == Lavapipe))
	}
	lists := map[string][]string{}
	for name, ours := range features {
		lists[name] = slices.Clone(ours)
	}
	for _, text := range l.Flags {
		name, value, err := parseFlag(text)
		if err != nil {
			return nil, err
		}
		if features[name] != nil {
			lists[name] = append(lists[name], value.(string))
			continue
		}
		o = append(o, chromedp.Flag(name, value))
	}
	for name, all := range lists {
		o = append(o, chromedp.Flag(name, strings.Join(all, ",")))
	}
	return o, nil
}
