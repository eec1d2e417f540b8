package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"llmparity/compare/explain"
	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/machine"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
)

// doctorSchema names the shape of what --json prints. Fields are added under the same name; none is taken away or given
// another meaning.
const doctorSchema = "llmparity.doctor/1"

// diagnosis is all that doctor finds out; docs/doctor.md describes it.
type diagnosis struct {
	Schema    string             `json:"schema"`
	Tool      record.Tool        `json:"tool"`
	Banner    banner             `json:"banner"`
	Machine   record.Environment `json:"machine"`
	GPUs      []gpuFound         `json:"gpus"`
	GPUNotes  []string           `json:"gpu_notes"`
	Libraries map[string]string  `json:"libraries"` // of GPUs' makers, by the path where the linker finds them
	WebGPU    *webgpu            `json:"webgpu"`    // null: no browser was asked, or it has none
	Engines   []engine.Finding   `json:"engines"`
	Parts     []engine.Part      `json:"parts"`
	Missing   []engine.Part      `json:"missing"`
	Servers   []engine.Part      `json:"servers"`
	Fits      fits               `json:"free_memory"`
	Checklist []explain.Check    `json:"checklist"`
	ExitCode  int                `json:"exit_code"`

	first error // of what is missing
}

// fits is the memory that a model could be put into.
type fits struct {
	RAMB   int64  `json:"ram_bytes"`
	VRAMB  int64  `json:"vram_bytes"`
	Within string `json:"ram_method"` // how that was found out, and what bounds it
	Judge  string `json:"judge"`      // the command that says what fits
}

// doctorFlags is what a user may say of the examination.
type doctorFlags struct {
	engineFlags
	json, quick, servers bool
}

func doctorCommand() *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:     "doctor",
		Aliases: []string{"env"},
		Short:   "Say what is here, what is missing, and how to get it",
		Long: "Say what this machine is, what of llmparity's parts is here, what is missing, and how to get it. The class of the error is that of " +
			"the first part that is missing.",
		Example: "  llmparity doctor\n  llmparity env --quick --json\n  llmparity doctor --openai-url http://127.0.0.1:8000",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.valid(c.Flags().Changed); err != nil {
				return err
			}
			d := f.examine(c.Context())
			if err := context.Cause(c.Context()); err != nil {
				return err
			}
			if !f.json {
				d.print(c.OutOrStdout())
			} else if err := writeIndented(c.OutOrStdout(), d); err != nil {
				return fmt.Errorf("writing what was found: %w", err)
			}
			if d.first != nil {
				return fmt.Errorf("not everything is here: %w", d.first)
			}
			return nil
		},
	}
	f.register(c.Flags(), ofParts)
	c.Flags().BoolVar(&f.json, "json", false, "print it as JSON, for machines (docs/doctor.md)")
	c.Flags().BoolVar(&f.quick, "quick", false, "start no browser: nothing is told of WebGPU then")
	c.Flags().BoolVar(&f.servers, "servers", false,
		"also ask the ports of this machine where servers of models usually listen")
	return c
}

// listened is how long others on the machine are listened to while programs are asked.
const listened = 500 * time.Millisecond

// examine asks everything at once: what takes long is waiting for other programs.
func (f *doctorFlags) examine(ctx context.Context) *diagnosis {
	d := &diagnosis{Schema: doctorSchema, Tool: tool(), GPUs: []gpuFound{}, GPUNotes: []string{},
		Missing: []engine.Part{},
		Servers: []engine.Part{}}
	dir := cache.Dir(os.Getenv)
	var all sync.WaitGroup
	var cuda string
	var python pythonFound
	searches := f.searches(dir)
	parts := make([]engine.Part, len(searches))
	for i, search := range searches {
		all.Go(func() {
			parts[i] = search.Find(ctx)
			parts[i].Name = search.Name
		})
	}
	all.Go(func() {
		d.Machine = machine.Describe(ctx,
			machine.Options{Listen: listened, Disks: []machine.Folder{{Role: "results", Path: "results"},
				{Role: "cache", Path: dir}, {Role: "temporary", Path: os.TempDir()},
				{Role: "shared-memory", Path: "/dev/shm"}}})
	})
	var devices []record.GPUInfo
	all.Go(func() { devices, d.GPUs, d.GPUNotes = findGPUs(ctx, gpu.Options{}) })
	all.Go(func() { d.Libraries = findLibraries(ctx) })
	all.Go(func() { cuda = cudaVersion(ctx) })
	all.Go(func() { python = findPython(ctx) })
	if f.servers {
		all.Go(func() { d.Servers = findServers(ctx, usualPorts()) })
	}
	all.Wait()
	d.Machine.GPUs = devices
	d.Banner = newBanner(d.Machine, python, cuda, d.GPUs)
	d.sort(append(parts, python.part()))
	d.Engines = f.enginesFound(d)
	d.Fits = newFits(ctx, d.GPUs)
	d.Checklist = promised(d.Machine)
	return d
}

// sort keeps what is missing apart. The first that is needed gives the exit code.
func (d *diagnosis) sort(parts []engine.Part) {
	for _, p := range parts {
		if p.Err == nil {
			d.Parts = append(d.Parts, p)
			if p.Device != nil {
				d.WebGPU = newWebGPU(*p.Device)
			}
			continue
		}
		p.Missing, p.Class, p.ExitCode = fault.OneLine(p.Err.Error()), fault.Of(p.Err), fault.ExitCode(p.Err)
		d.Missing = append(d.Missing, p)
		if d.first == nil {
			d.first, d.ExitCode = p.Err, p.ExitCode
		}
	}
}

// newFits is what is free now, within the limits that we are under.
func newFits(ctx context.Context, gpus []gpuFound) fits {
	out := fits{Judge: "llmparity estimate MODEL"}
	out.RAMB, out.Within, _ = machine.Room(ctx)
	for _, g := range gpus {
		if g.Part == "" && g.FreeB != nil { // the parts of a divided one have their share of its
			out.VRAMB += *g.FreeB
		}
	}
	return out
}

// usualPorts are where servers of models listen unless told otherwise: Ollama, llama-server, vLLM, SGLang, TGI, LM
// Studio, text-generation-webui.
func usualPorts() []string { return []string{"11434", "8080", "8000", "30000", "3000", "1234", "5000"} }

// findServers asks those who listen on ports of this machine. Who does not answer as a server of models is not there.
func findServers(ctx context.Context, ports []string) []engine.Part {
	var ask func(context.Context, string) engine.Part
	for _, k := range kinds.All {
		if k.Ask != nil {
			ask = k.Ask
		}
	}
	found := make([]engine.Part, len(ports))
	var all sync.WaitGroup
	for i, port := range ports {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			found[i] = ask(ctx, "http://127.0.0.1:"+port)
		})
	}
	all.Wait()
	return slices.DeleteFunc(found, func(p engine.Part) bool { return p.Err != nil })
}

// writeIndented is JSON for machines that people can read.
func writeIndented(w interface{ Write([]byte) (int, error) }, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
