package main

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"llmparity/browser"
	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/plan"
)

// webllmFlags is what a user may say of WebLLM and its browser.
type webllmFlags struct {
	chrome   string
	launch   browser.Launch
	adapter  string
	modelLib string         // a model library, by its file or address; empty: one is compiled
	bundle   browser.Bundle // which WebLLM
	place    placement
}

// placement is what a plan says of where WebLLM runs.
type placement struct {
	thread   browser.Thread
	watchdog time.Duration
}

func webllmKind() engineKind {
	flags := []string{"chrome", "headed", "attach", "chrome-flag", "adapter", "thread", "watchdog", "kernels", "sort",
		"dtype",
		"webllm-version", "webllm-bundle", "model-lib", "profile-phases"}
	for _, k := range profileKinds {
		flags = append(flags, string(k.kind))
	}
	return engineKind{name: browser.Name, flags: flags,
		gguf: func(string) string {
			return "converts it, compiles a library for it and runs it: in f32, or in f16 where the WebGPU adapter has shader-f16"
		},
		make: func(f *engineFlags, _ string) engine.Engine { return f.newWebLLM() }}
}

func (f *webllmFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.chrome, "chrome", "", "the browser to start, by its path or as "+
		strings.Join(browser.Brands, ", ")+
		" (default: $LLMPARITY_CHROME, else Chrome, Chromium or Edge)")
	flags.BoolVar(&f.launch.Headed, "headed", false,
		"let the browser have a window: on a private Xvfb where there is no display")
	flags.StringVar(&f.launch.Attach, "attach", "",
		"open a tab in a browser that runs already: HOST:PORT of its --remote-debugging-port, or ws://…")
	flags.StringArrayVar(&f.launch.Flags, "chrome-flag", nil,
		"pass NAME or NAME=VALUE on to the browser; may be given several times")
	flags.StringVar(&f.adapter, "adapter", "auto", "WebGPU adapter: auto, gpu or swiftshader (computed on the CPU)")
}

func (f *webllmFlags) valid() error {
	if _, err := browser.ParseAdapter(f.adapter); err != nil {
		return err
	}
	return f.launch.Check(f.chrome)
}

func (f *webllmFlags) follow(p plan.Plan) {
	if p.Adapter != "" {
		f.adapter = p.Adapter
	}
	f.modelLib = p.ModelLib
	f.place = placement{thread: browser.Thread(p.Thread), watchdog: time.Duration(p.Watchdog)}
}

// webllm is the WebLLM of a command, which asks its browser for the adapter once.
func (f *engineFlags) webllm() *browser.WebLLM { return f.named(browser.Name).(*browser.WebLLM) }

// newWebLLM is a WebLLM that f describes.
func (f *engineFlags) newWebLLM() *browser.WebLLM {
	p := packager{packageFlags: f.packageFlags, dir: cache.Dir(os.Getenv), bundle: f.bundle, given: f.modelLib}
	return browser.New(browser.Config{Chrome: f.chrome, Launch: f.launch, Adapter: browser.Adapter(f.adapter),
		Bundle:  f.bundle,
		Kernels: f.kernels, DType: f.dtype, Thread: f.place.thread, Watchdog: f.place.watchdog, Package: p.make})
}
