package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"llmparity/browser"
	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/nearest"
	"llmparity/native/llamacpp"
)

// engineFlags is what a user may say of engines, whichever command starts them.
type engineFlags struct {
	chrome      string
	launch      browser.Launch
	adapter     string
	llamaServer string
	threads     int
	packageFlags
	modelLib string         // a model library for WebLLM, by its file or address; empty: one is compiled
	bundle   browser.Bundle // which WebLLM
	place    placement
}

// placement is what a plan says of where WebLLM runs.
type placement struct {
	thread   browser.Thread
	watchdog time.Duration
}

func (f *engineFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.chrome, "chrome", "", "the browser to start, by its path or as "+strings.Join(browser.Brands, ", ")+
		" (default: $LLMPARITY_CHROME, else Chrome, Chromium or Edge)")
	flags.BoolVar(&f.launch.Headed, "headed", false, "let the browser have a window: on a private Xvfb where there is no display")
	flags.StringVar(&f.launch.Attach, "attach", "",
		"open a tab in a browser that runs already: HOST:PORT of its --remote-debugging-port, or ws://…")
	flags.StringArrayVar(&f.launch.Flags, "chrome-flag", nil, "pass NAME or NAME=VALUE on to the browser; may be given several times")
	flags.StringVar(&f.adapter, "adapter", "auto", "WebGPU adapter: auto, gpu or swiftshader (computed on the CPU)")
	flags.StringVar(&f.llamaServer, "llama-server", "",
		"the llama-server to start (default: $LLMPARITY_LLAMA_SERVER, else PATH, else the one that make setup built)")
}

// all makes every engine there is.
func (f *engineFlags) all() []engine.Engine {
	dir := cache.Dir(os.Getenv)
	return []engine.Engine{
		f.webllm(),
		llamacpp.New(llamacpp.Config{Path: f.llamaServer, Cache: dir, Threads: f.threads, KVType: f.dtype}),
	}
}

// valid refuses what makes no sense, whichever engines there are.
func (f *engineFlags) valid() error {
	if _, err := browser.ParseAdapter(f.adapter); err != nil {
		return err
	}
	if err := f.launch.Check(f.chrome); err != nil {
		return err
	}
	if err := f.packageFlags.validate(); err != nil {
		return err
	}
	if f.threads < 1 {
		return fault.New(fault.Usage, "", "--threads %d: at least 1 is needed", f.threads)
	}
	return nil
}

// known refuses engines that there are not.
func (f *engineFlags) known(names []string) error {
	all := f.all()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(e engine.Engine) bool { return e.Name() == name }) {
			return unknownEngine(name, all)
		}
	}
	return nil
}

// build gives the engines of a plan, in its order, after known.
func (f *engineFlags) build(names []string) []engine.Engine {
	var out []engine.Engine
	for _, name := range names {
		for _, e := range f.all() {
			if e.Name() == name {
				out = append(out, e)
			}
		}
	}
	return out
}

func unknownEngine(name string, all []engine.Engine) error {
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return fault.New(fault.UnknownEngine,
		fmt.Sprintf("did you mean %q? There are: %s", nearest.Of(name, names, 1)[0], strings.Join(names, ", ")),
		"unknown engine %q", name)
}
