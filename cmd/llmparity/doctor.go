package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"llmparity/assets/echarts"
	"llmparity/assets/page"
	"llmparity/browser"
	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/modellib"
	"llmparity/internal/record"
	"llmparity/internal/run"
	"llmparity/internal/sample"
	"llmparity/native/llamacpp"
)

// finding is what a check has found; its error says what is missing and how to get it.
type finding struct {
	part   string
	detail string
	err    error
}

func doctorCommand() *cobra.Command {
	var f engineFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is here, what is missing, and how to get it",
		Long:  "Say what is here, what is missing, and how to get it. The exit code is that of the first part that is missing.",
		Args:  arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.webllmFlags.valid(); err != nil {
				return err
			}
			env := run.Environment(c.Context(), ".")
			fmt.Fprintf(c.OutOrStdout(), "%s, kernel %s, %s, %d cores, %.1f GiB, load %.2f\n", env.OS, env.Kernel, env.CPU, env.Cores,
				float64(env.MemoryB)/(1<<30), env.Load1)
			var first error
			for _, check := range checks(f) {
				found := check(c.Context())
				if found.err != nil {
					fmt.Fprintf(c.OutOrStdout(), "MISSING  %-15s %s\n", found.part, fault.OneLine(found.err.Error()))
					if first == nil {
						first = found.err
					}
					continue
				}
				fmt.Fprintf(c.OutOrStdout(), "ok       %-15s %s\n", found.part, found.detail)
			}
			if first != nil {
				return fmt.Errorf("not everything is here: %w", first)
			}
			return nil
		},
	}
	f.register(c.Flags())
	return c
}

func checks(f engineFlags) []func(context.Context) finding {
	dir := cache.Dir(os.Getenv)
	tools := modellib.FindTools(dir, os.Getenv)
	return append([]func(context.Context) finding{
		func(ctx context.Context) finding {
			path, err := browser.FindChrome(f.chrome)
			if err != nil {
				return finding{"browser", "", err}
			}
			return version(ctx, "browser", fault.NoChrome, path, "--version")
		},
		func(ctx context.Context) finding {
			path, err := llamacpp.Find(llamacpp.Config{Path: f.llamaServer, Cache: dir})
			if err != nil {
				return finding{"llama-server", "", err}
			}
			return version(ctx, "llama-server", fault.NoLlamaServer, path, "--version")
		},
		f.llamacppFlags.check,
		f.ollamaFlags.check,
		func(context.Context) finding {
			_, err := page.Bundle()
			return finding{"WebLLM bundle", page.WebLLM, err}
		},
		func(context.Context) finding {
			_, err := echarts.Script()
			return finding{"echarts", "inlined in reports", err}
		},
		func(ctx context.Context) finding {
			return version(ctx, "emscripten", fault.NoEmscripten, tools.Emcc, "--version")
		},
		func(ctx context.Context) finding {
			return version(ctx, "Python with TVM", fault.NoPython, tools.Python, "-c", "import sys, tvm; print(sys.version.split()[0], 'with TVM', tvm.__version__)")
		},
		func(ctx context.Context) finding {
			return adapter(ctx, browser.New(browser.Config{Chrome: f.chrome, Launch: f.launch, Adapter: browser.Adapter(f.adapter)}))
		},
		func(context.Context) finding { return finding{"cache", dir, nil} },
	}, f.openaiFlags.checks()...)
}

// version runs a program that tells its version; the first line that says something counts.
func version(ctx context.Context, part string, kind fault.Kind, path string, args ...string) finding {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return finding{part, "", fault.Wrap(kind, err, "run `make setup`", "%s can't be run", path)}
	}
	for line := range strings.Lines(string(out)) {
		// Wrapper scripts may complain before the program speaks.
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, ": line ") && !strings.Contains(line, "unexpected operator") {
			return finding{part, line + "  " + path, nil}
		}
	}
	return finding{part, path, nil}
}

// adapter starts the browser and asks which WebGPU adapter its page gets.
func adapter(ctx context.Context, e engine.Engine) finding {
	var p deviceProbe
	session, err := e.Open(ctx, &p)
	if err == nil {
		err = session.Close()
	}
	half := "no float16"
	if slices.Contains(strings.Fields(p.device.Detail["features"]), "shader-f16") {
		half = "with float16"
	}
	return finding{"WebGPU adapter", fmt.Sprintf("%s (%s), %s", p.device.Name, p.device.Class, half), err}
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }

// deviceProbe keeps the device that an engine reports, and nothing else.
type deviceProbe struct{ device record.Device }

func (*deviceProbe) Attach(sample.Source) func() { return func() {} }
func (*deviceProbe) Span(record.Span)            {}
func (*deviceProbe) Warn(record.Warning)         {}
func (*deviceProbe) Log(string) io.WriteCloser   { return discard{io.Discard} }

func (p *deviceProbe) Event(e record.Event) {
	if e.Device != nil {
		p.device = *e.Device
	}
}
