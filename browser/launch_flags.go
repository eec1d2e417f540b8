package browser

import (
	"slices"
	"strings"

	"github.com/chromedp/chromedp"

	"llmparity/internal/fault"
)

// Launch says how the browser comes to run.
type Launch struct {
	Headed bool     // with a window; where there is no display, on a private one
	Attach string   // HOST:PORT or ws://… of a browser that runs already; nothing is started then
	Flags  []string // NAME[=VALUE]: what is passed on to the browser beside our own flags
}

// Check refuses what makes no sense; chrome is what was given as the browser to start.
func (l Launch) Check(chrome string) error {
	if l.Attach != "" {
		if _, err := parseAddress(l.Attach); err != nil {
			return err
		}
		for flag, given := range map[string]bool{"chrome": chrome != "", "headed": l.Headed,
			"chrome-flag": len(l.Flags) > 0} {
			if given {
				return fault.New(fault.Usage, "give one of them",
					"--%s says how a browser is started, and --attach takes one that runs", flag)
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

// refused are the flags that are ours to set, and why.
var refused = map[string]string{
	"user-data-dir":            "every launch has a profile of its own, which is removed",
	"remote-debugging-port":    "the browser is talked to by a pipe; to use one that listens, start it and give --attach",
	"remote-debugging-address": "the browser is talked to by a pipe; to use one that listens, start it and give --attach",
	"remote-debugging-pipe":    "the browser is talked to by a pipe already",
	"headless":                 "it is the default; for a window give --headed",
	"use-webgpu-adapter":       "give --adapter",
	"no-startup-window":        "the page needs one",
}

// parseFlag reads NAME[=VALUE]; dashes before the name are dropped. The value is true where there is none.
func parseFlag(text string) (name string, value any, err error) {
	name, said, has := strings.Cut(strings.TrimLeft(text, "-"), "=")
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return "", nil, fault.New(fault.Usage, "write NAME or NAME=VALUE", "--chrome-flag %q is no flag of a browser",
			text)
	}
	if why, ok := refused[name]; ok {
		return "", nil, fault.New(fault.Usage, why, "--chrome-flag %s can't be given", name)
	}
	if ours := features[opposite[name]]; ours != nil {
		for _, f := range strings.Split(said, ",") {
			if slices.Contains(ours, f) {
				return "", nil, fault.New(fault.Usage, "measuring needs it as it is",
					"--chrome-flag %s=%s contradicts ours: --%s=%s", name, f, opposite[name], f)
			}
		}
	}
	if !has && features[name] == nil {
		return name, true, nil
	}
	return name, said, nil
}

// features are the browser's that we switch, by the flags that do so. Chrome heeds the last of two such flags alone, so
// that what a user adds goes into one list with ours.
var features = map[string][]string{
	// The trace that finds the page's process would leave a service's process behind.
	"enable-features": {"NetworkService", "NetworkServiceInProcess", "TracingServiceInProcess"},
	// What takes memory, or processes, without the page's doing: spare renderers, pages that could be gone back to, the
	// address bar's own page. The first two are chromedp's.
	"disable-features": {"Translate", "BlinkGenPropertyTrees", "SpareRendererForSitePerProcess", "BackForwardCache",
		"WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "OptimizationHints", "MediaRouter"},
	"enable-blink-features": {eagerMeasuring},
}

// opposite names the list that undoes what another does.
var opposite = map[string]string{
	"enable-features": "disable-features", "disable-features": "enable-features",
	"disable-blink-features": "enable-blink-features",
}

// flagOptions passes on the adapter's flag and the user's.
func flagOptions(a Adapter, l Launch) (o []chromedp.ExecAllocatorOption, err error) {
	if a.Software() {
		o = append(o, chromedp.Flag("use-webgpu-adapter", "swiftshader"))
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
