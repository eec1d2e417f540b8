// Package fit answers whether a model fits into this machine, or into a machine described by flags. It starts and
// measures nothing: sizes are calculated, and free memory is what the system reports.
package fit

import (
	"context"
	"fmt"

	"llmparity/internal/bench/resolve"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/record"
)

// Question names the model, and the machine if it is not this one.
type Question struct {
	Numbers   modelsize.Numbers // sizes of a model without a file
	Engine    string            // "": by the kind of model
	Engines   []*engine.Memory  // all engines
	Setup     estimate.Setup
	Machine   estimate.Machine // without RAM and Adapter, which follow from the flags
	RAMGiB    float64
	Adapter   string
	Mirror    string
	Catalogue func() (catalogue.Catalogue, error)
	path      string // the model's file or folder
}

// Answer is the predicted memory, and whether it fits.
type Answer struct {
	estimate.Estimate
	Risk record.Risk
	Fit  estimate.Fit
}

// Ask answers for a model, by name or, without one, by the question's numbers. given reports whether a flag was set:
// flags without effect are refused.
func (q *Question) Ask(ctx context.Context, name string, given func(flag string) bool) (Answer, error) {
	m, err := q.model(ctx, name)
	if err == nil {
		err = q.place(m, given)
	}
	if err != nil {
		return Answer{}, err
	}
	return q.estimate(ctx, m)
}

// place settles where the engine keeps the model, and refuses flags without effect on that engine.
func (q *Question) place(m estimate.Model, given func(string) bool) (err error) {
	s := &q.Setup
	if s.Engine, err = estimate.Choose(q.Engines, q.Engine, m, *s); err != nil {
		return err
	}
	s.Started(given)
	q.Machine.RAM = q.RAMGiB > 0
	if s.Engine.Adapter != nil {
		if q.Machine.Adapter, err = s.Engine.Adapter(q.Adapter); err != nil {
			return err
		}
	}
	return s.Place(q.Machine, given)
}

// estimate predicts the memory and compares it with this machine, or the one that the flags describe.
func (q *Question) estimate(ctx context.Context, m estimate.Model) (Answer, error) {
	e, err := estimate.Of(m, q.Setup)
	if err != nil {
		return Answer{}, err
	}
	rooms, s := q.rooms(ctx, e), &q.Setup
	note := e.Assumes(q.Machine)
	vram, ok := rooms[estimate.VRAM]
	switch {
	case ok && s.Engine.Itself && s.GPULayers == 0: // it offloads all that fit
		s.GPULayers = e.LayersIn(vram.Free)
		s.OnGPU = s.GPULayers > 0
		if e, err = estimate.Of(m, *s); err != nil {
			return Answer{}, err
		}
		note = fmt.Sprintf("%s puts %d of %d layers on the GPU: as many as fit", s.Engine.Title, s.GPULayers, m.Layers)
	case q.Engine == "" && s.General():
		note = fmt.Sprintf("%s is assumed; name another engine with --engine, e.g. %s or %s", s.Engine.Title,
			q.Engines[0].Name, q.Engines[1].Name)
	}
	if note != "" {
		e.Warnings = append(e.Warnings, note)
	}
	r := e.Risk(rooms)
	return Answer{e, r, e.Fit(r, q.refused(e))}, nil
}

// refused returns why the engine cannot run the model here, or "".
func (q *Question) refused(e estimate.Estimate) string {
	if why := e.Refused(q.Machine); why != "" {
		return why
	}
	if m := e.Setup.Engine; m.Cannot != nil && e.Model.GGUF() {
		if err := m.Cannot(q.path, e.Setup.Context); err != nil {
			return m.Title + ": " + fault.OneLine(err.Error())
		}
	}
	return ""
}

// rooms returns the free memory of each place.
func (q *Question) rooms(ctx context.Context, e estimate.Estimate) map[string]estimate.Room {
	s := e.Setup
	var gpus *gpu.Monitor
	if _, onGPU := e.NeedAt(estimate.VRAM); onGPU && s.GPUMemoryGiB == 0 {
		gpus = gpu.Open(ctx, gpu.Options{})
		defer gpus.Close()
	}
	rooms := resolve.Rooms(ctx, e, gpus)
	set := func(place string, gib float64, how string) {
		if gib > 0 {
			rooms[place] = estimate.Room{Free: int64(gib * (1 << 30)), How: how}
		}
	}
	set(estimate.RAM, q.RAMGiB, "--ram-gb")
	set(estimate.VRAM, s.GPUMemoryGiB*float64(s.TensorParallel), "--gpu-memory-gb, all devices")
	e.Rooms(q.Machine, rooms)
	return rooms
}
