// Package flags has the flags that change what a browser measures and how much memory it takes, and combines them with
// those of users. It can't say what a flag does: browsers ignore those that they don't know.
package flags

import (
	"slices"
	"strings"

	"github.com/chromedp/chromedp"

	"llmparity/internal/kit/fault"
)

// EagerMeasuring is the browser feature without which measureUserAgentSpecificMemory waits many seconds for a garbage
// collection.
const EagerMeasuring = "ForceEagerMeasureMemory"

// Check refuses flags of users, NAME[=VALUE], that llmparity needs otherwise.
func Check(users []string) error {
	for _, text := range users {
		if _, _, err := parse(text); err != nil {
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

// parse parses NAME[=VALUE], with or without dashes. Without =VALUE, the value is true.
func parse(text string) (name string, value any, err error) {
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
	"enable-blink-features": {EagerMeasuring},
}

// opposite maps a list of features to the one that undoes it.
var opposite = map[string]string{
	"enable-features": "disable-features", "disable-features": "enable-features",
	"disable-blink-features": "enable-blink-features",
}

// Options returns our flags and the users'.
func Options(users []string) (out []chromedp.ExecAllocatorOption, err error) {
	lists := map[string][]string{}
	for name, ours := range features {
		lists[name] = slices.Clone(ours)
	}
	for _, text := range users {
		name, value, err := parse(text)
		if err != nil {
			return nil, err
		}
		if features[name] != nil {
			lists[name] = append(lists[name], value.(string))
			continue
		}
		out = append(out, chromedp.Flag(name, value))
	}
	for name, all := range lists {
		out = append(out, chromedp.Flag(name, strings.Join(all, ",")))
	}
	return out, nil
}
