// Package doctor describes a machine: hardware, engines and the parts they need, and what is missing. It asks programs
// for their version, which does not prove that they can run a model.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"llmparity/compare/explain"
	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Schema names the JSON format of a Diagnosis. Fields may be added to a format, not removed or changed.
const Schema = "llmparity.doctor/1"

// Diagnosis is the result; docs/howto/check-a-machine.md describes it.
type Diagnosis struct {
	Schema    string             `json:"schema"`
	Tool      record.Tool        `json:"tool"`
	Banner    Banner             `json:"banner"`
	Machine   record.Environment `json:"machine"`
	GPUs      []GPU              `json:"gpus"`
	GPUNotes  []string           `json:"gpu_notes"`
	Libraries map[string]string  `json:"libraries"` // paths of GPU libraries that the linker finds
	WebGPU    *WebGPU            `json:"webgpu"`    // null: not checked, or no adapter
	Engines   []engine.Finding   `json:"engines"`
	Parts     []engine.Part      `json:"parts"`
	Missing   []engine.Part      `json:"missing"`
	Servers   []engine.Part      `json:"servers"`
	Fits      Fits               `json:"free_memory"`
	Checklist []explain.Check    `json:"checklist"`
	ExitCode  int                `json:"exit_code"`

	first error // of what is missing
}

// Fits is the free memory for a model.
type Fits struct {
	RAMB   int64  `json:"ram_bytes"`
	VRAMB  int64  `json:"vram_bytes"`
	Within string `json:"ram_method"` // source of the figure, and its limit
	Judge  string `json:"judge"`      // the command that says what fits
}

// Options says what to check.
type Options struct {
	Kinds   engine.Kinds
	Choice  *engine.Choice // settings of engines
	Tool    record.Tool
	Cache   string // folder
	Quick   bool   // start no browser
	Servers bool   // look for model servers on their usual ports
}

// listened is how long the load of other processes is measured.
const listened = 500 * time.Millisecond

// Examine checks everything concurrently: most time is spent waiting for other programs.
func Examine(ctx context.Context, o Options) *Diagnosis {
	d := &Diagnosis{Schema: Schema, Tool: o.Tool, Missing: []engine.Part{}, Servers: []engine.Part{}}
	var all sync.WaitGroup
	var cuda string
	var python pythonFound
	searches := o.searches()
	parts := make([]engine.Part, len(searches))
	for i, search := range searches {
		all.Go(func() {
			parts[i] = search.Find(ctx)
			parts[i].Name = search.Name
		})
	}
	all.Go(func() {
		d.Machine = machine.Describe(ctx, listened, []machine.Folder{{Role: "results", Path: "results"},
			{Role: "cache", Path: o.Cache}, {Role: "temporary", Path: os.TempDir()},
			{Role: "shared-memory", Path: "/dev/shm"}}...)
	})
	var devices []record.GPUInfo
	all.Go(func() { devices, d.GPUs, d.GPUNotes = findGPUs(ctx, gpu.Options{}) })
	all.Go(func() { d.Libraries = findLibraries(ctx) })
	all.Go(func() { cuda = cudaVersion(ctx) })
	all.Go(func() { python = findPython(ctx) })
	if o.Servers {
		all.Go(func() { d.Servers = findServers(ctx, o.Kinds, usualPorts) })
	}
	all.Wait()
	d.Machine.GPUs = devices
	d.Banner = newBanner(d.Machine, python, cuda, d.GPUs)
	d.sort(append(parts, python.part()))
	d.Engines = o.engines(d)
	d.Fits = newFits(ctx, d.GPUs)
	d.Checklist = promised(d.Machine, o.Kinds)
	return d
}

// Err is the error of the first missing part that is needed; nil: none is missing.
func (d *Diagnosis) Err() error {
	if d.first == nil {
		return nil
	}
	if silent(d.first) {
		return fmt.Errorf("something did not answer: %w", d.first)
	}
	return fmt.Errorf("something is missing: %w", d.first)
}

// silent reports whether a part was found, but did not answer in time.
func silent(err error) bool {
	_, is := errors.AsType[child.NoAnswer](err)
	return is
}

// sort separates missing parts. The first one decides the exit code.
func (d *Diagnosis) sort(parts []engine.Part) {
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

// newFits returns the free memory within the limits of this process.
func newFits(ctx context.Context, gpus []GPU) Fits {
	out := Fits{Judge: "llmparity estimate MODEL"}
	out.RAMB, out.Within, _ = machine.Room(ctx)
	for _, g := range gpus {
		if g.Part == "" && g.FreeB != nil { // parts of a divided GPU share its memory
			out.VRAMB += *g.FreeB
		}
	}
	return out
}

// usualPorts are default ports of Ollama, llama-server, vLLM, SGLang, TGI, LM Studio and text-generation-webui.
var usualPorts = []string{"11434", "8080", "8000", "30000", "3000", "1234", "5000"}

// findServers returns the model servers that answer on ports of this machine.
func findServers(ctx context.Context, kinds engine.Kinds, ports []string) []engine.Part {
	at := slices.IndexFunc(kinds, func(k *engine.Kind) bool { return k.Ask != nil })
	found := make([]engine.Part, len(ports))
	var all sync.WaitGroup
	for i, port := range ports {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			found[i] = kinds[at].Ask(ctx, "http://127.0.0.1:"+port)
		})
	}
	all.Wait()
	return slices.DeleteFunc(found, func(p engine.Part) bool { return p.Err != nil })
}
