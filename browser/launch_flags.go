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
		if _, err := parseFlag(f); err != nil {
			return err
		}
	}
	return nil
}

// flag is one of the browser's.
type flag struct {
	name, value string
	bare        bool // has no value
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

// parseFlag reads NAME[=VALUE]; dashes before the name are dropped.
func parseFlag(text string) (flag, error) {
	name, value, has := strings.Cut(strings.TrimLeft(text, "-"), "=")
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return flag{}, fault.New(fault.Usage, "write NAME or NAME=VALUE", "--chrome-flag %q is no flag of a browser",
			text)
	}
	if why, ok := refused[name]; ok {
		return flag{}, fault.New(fault.Usage, why, "--chrome-flag %s can't be given", name)
	}
	if ours := features[opposite[name]]; ours != nil {
		for _, f := range strings.Split(value, ",") {
			if slices.Contains(ours, f) {
				return flag{}, fault.New(fault.Usage, "measuring needs it as it is",
					"--chrome-flag %s=%s contradicts ours: --%s=%s",
					name, f, opposite[name], f)
			}
		}
	}
	return flag{name: name, value: value, bare: !has}, nil
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

// flagOptions passes on the adapter's flags and the user's.
func flagOptions(adapter []string, l Launch) ([]chromedp.ExecAllocatorOption, error) {
	var o []chromedp.ExecAllocatorOption
	lists := map[string][]string{}
	for name, ours := range features {
		lists[name] = slices.Clone(ours)
	}
	for _, text := range adapter {
		name, value := cutFlag(text)
		o = append(o, chromedp.Flag(name, value))
	}
	for _, text := range l.Flags {
		f, err := parseFlag(text)
		switch {
		case err != nil:
			return nil, err
		case features[f.name] != nil:
			lists[f.name] = append(lists[f.name], f.value)
		case f.bare:
			o = append(o, chromedp.Flag(f.name, true))
		default:
			o = append(o, chromedp.Flag(f.name, f.value))
		}
	}
	for name, all := range lists {
		o = append(o, chromedp.Flag(name, strings.Join(all, ",")))
	}
	return o, nil
}
