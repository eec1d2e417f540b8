package resolve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/models"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/record"
)

// predictor predicts the memory of a setup's cells and judges whether it fits.
type predictor struct {
	r  *Resolver
	s  *Chosen
	by map[int]estimatedCell // estimates of cells, by id, if the engine is known
}

type estimatedCell struct {
	estimate.Estimate
	by     engine.Engine
	engine string
	device func(context.Context) (record.Device, error)
}

// estimated estimates an engine with the setup's model, and the given prompt and output lengths. held says how the
// engine holds the model, as far as known by now; without held.As only weights and KV cache are estimated.
func (r *Resolver) estimated(ctx context.Context, e Engine, of *Chosen, input, output int) (
	est estimate.Estimate, held engine.Loaded, err error) {
	m := e.form(of.Model)
	held = e.Kind.Loaded(e.Engine, m)
	s := estimate.Setup{Engine: held.As, OnGPU: held.OnGPU, DType: held.DType,
		KVDType: held.KVDType, Context: m.Context,
		Own: []any{estimate.MLCSettings{Weights: held.Weights, PrefillChunk: held.PrefillChunk}}}
	if held.As != nil { // an unknown engine may not repack
		s.Own = append(s.Own, estimate.GGMLSettings{Repacks: estimate.Repacks()})
	}
	var sizes estimate.Model
	if m.Format == record.Served {
		s.DType, s.TensorParallel, s.Quantization = of.Plan.DType, of.Plan.TensorParallel, of.Plan.Quantization
		sizes, err = stated(m, of.Plan.Deployment)
	} else if sizes, err = r.sizes(ctx, m, held); err == nil {
		if settled, ok := e.Engine.(engine.Settled); ok {
			if settings := settled.Settings(m); settings != nil {
				s.Take(settings)
			}
		}
	}
	if err != nil {
		return est, held, err
	}
	// the last token has no keys and values, because nothing attends to it
	s.InputLen, s.OutputLen = input, max(output-1, 0)
	if s.Context > 0 { // the launch refuses longer ones
		s.OutputLen = min(s.OutputLen, s.Context-1)
		s.InputLen = min(input, s.Context-s.OutputLen)
	}
	est, err = estimate.Of(sizes, s)
	return est, held, err
}

// sizes returns the sizes of a model as an engine holds it.
func (r *Resolver) sizes(ctx context.Context, m models.Model, held engine.Loaded) (estimate.Model, error) {
	file := cmp.Or(held.Path, m.Name)
	if held.Path == "" && m.From != "" {
		file = "the GGUF of " + m.From
	}
	return once(r.cache, [3]string{"estimated", file, held.Library}, func() (of estimate.Model, err error) {
		if held.Path == "" && m.From != "" {
			return models.Outline(m)
		} else if held.Path == "" {
			of, _, err = r.Models.Estimated(ctx, m.Name)
		} else if of, err = models.Sizes(held.Path); err == nil && held.Library != "" {
			err = of.With(held.Library)
		}
		return of, err
	})
}

// stated describes a model on a server by what the plan says about it.
func stated(m models.Model, d plan.Deployment) (of estimate.Model, err error) {
	n := modelsize.Numbers{Parameters: d.Params, Layers: d.Layers, Heads: d.Heads, Hidden: d.HiddenSize,
		HeadDim: d.HeadDim}
	if !n.Any() {
		return of, fmt.Errorf("model %s: sizes unknown, because only its server has the file; set "+
			"model_params, num_layers, num_heads, head_dim and hidden_size in the plan", m.Name)
	}
	if of, err = modelsize.FromNumbers(n); err != nil {
		return of, fmt.Errorf("model %s: %s; set model_params, num_layers and so on in the plan", m.Name, fault.What(err))
	}
	of.Name = m.Name
	return of, nil
}

// Predict predicts a cell's memory after its engine has prepared.
func (p *predictor) Predict(ctx context.Context, c record.Cell) record.Prediction {
	input, output, note := p.r.longest(p.s.Model, &c)
	all := p.s.launch.set.engines
	at := slices.IndexFunc(all, func(e Engine) bool { return e.Name() == c.Engine })
	est, held, err := p.r.estimated(ctx, all[at], p.s, input, output)
	if err != nil {
		return record.Prediction{Cell: c.ID, Absent: err.Error()}
	}
	out := predicted(c.ID, est)
	if note != "" {
		out.Notes = append(out.Notes, note)
	}
	if held.As == nil {
		return loosened(out, c.Engine)
	}
	p.by[c.ID] = estimatedCell{est, all[at].Engine, c.Engine, held.Device}
	return out
}

// longest returns the lengths of the largest request of a cell.
func (r *Resolver) longest(m models.Model, c *record.Cell) (input, output int, note string) {
	count := func(text string, asked int) (int, string) {
		if asked > 0 {
			return asked, ""
		}
		return r.counted(m, text)
	}
	input, note = count(c.Prompt, c.InputTokens)
	output = c.MaxTokens
	t := c.Traffic
	if t == nil {
		return input, output, note
	}
	for _, k := range t.Mix {
		if n, of := count(k.Prompt, k.InputTokens); n+k.MaxTokens > input+output {
			input, output, note = n, k.MaxTokens, of
		}
	}
	for _, a := range t.Trace {
		if a.InputTokens+a.MaxTokens > input+output {
			input, output = a.InputTokens, a.MaxTokens
		}
	}
	if t.Turns > 1 { // the last prompt contains all earlier turns
		input = t.Turns*input + (t.Turns-1)*output
	}
	return input, output, note
}

// counted returns the number of tokens of a prompt, with a note if it is uncertain.
func (r *Resolver) counted(m models.Model, text string) (n int, note string) {
	n, err := r.length(m, text)
	if err != nil {
		n, note = len(text)/4, "no tokenizer: assumes 4 bytes of prompt for each token"
	}
	return max(n, 1), note
}

// predicted converts an estimate to the record's form.
func predicted(cell int, e estimate.Estimate) record.Prediction {
	p := record.Prediction{Cell: cell, Source: e.Model.Source, Setup: e.Settings(), TokenB: e.PerToken,
		Notes: e.Warnings}
	for _, c := range e.AsMeasured() {
		p.Parts = append(p.Parts, record.Predicted{Name: c.Name, Low: c.Low, Best: c.Best, High: c.High, DType: c.DType,
			Method: c.Method, Confidence: string(c.Confidence)})
	}
	return p
}

// loosened keeps only the components that don't depend on the engine.
func loosened(p record.Prediction, name string) record.Prediction {
	parts := p.Parts
	p.Parts = nil
	for _, c := range parts {
		known := []string{estimate.Weights, estimate.KVReserved, estimate.KVUsed, estimate.MultiGPU}
		if !slices.Contains(known, c.Name) {
			continue
		}
		c.Confidence = string(estimate.Low)
		c.Method = "if " + name + " stores it as in the file or as llama.cpp does: " + c.Method
		p.Parts = append(p.Parts, c)
	}
	for setting := range p.Setup {
		if setting != "context" && setting != "weights_dtype" && setting != "kv_dtype" {
			delete(p.Setup, setting)
		}
	}
	p.Notes = append(p.Notes,
		"memory use of "+name+" is unknown: only weights and KV cache are predicted")
	return p
}

// Judge reports whether a cell's predicted memory fits into free memory.
func (p *predictor) Judge(ctx context.Context, predicted record.Prediction, gpus *gpu.Monitor) record.Risk {
	if predicted.Absent != "" {
		return estimate.Unjudged("no prediction: " + predicted.Absent)
	}
	e, ok := p.by[predicted.Cell]
	if !ok {
		return estimate.Unjudged("the engine's total memory can't be predicted")
	}
	rooms := limited(ctx, e.by, e.Estimate, Rooms(ctx, e.Estimate, gpus))
	if n, ok := e.NeedAt(estimate.Buffer); ok {
		if room := p.buffer(ctx, e, n.Best); room.Free > 0 {
			rooms[n.Place] = room
		}
	}
	return e.Risk(rooms)
}

// limited returns rooms with that of an engine whose processes have a limit of their own. The engine before the load,
// which estimates leave out, counts there.
func limited(ctx context.Context, e engine.Engine, of estimate.Estimate,
	rooms map[string]estimate.Room) map[string]estimate.Room {
	rooms = maps.Clone(rooms)
	in, ok := e.(engine.Limited)
	if !ok {
		return rooms
	}
	free, how, ok := in.Room(ctx)
	if m := of.Setup.Engine; ok && m != nil && m.Before > 0 {
		free = max(free-m.Before, 0)
		how = fmt.Sprintf("%s and %s of %s before the load", how, words.Size(m.Before), m.Title)
	}
	if have, known := rooms[estimate.RAM]; ok && (!known || free < have.Free) {
		rooms[estimate.RAM] = estimate.Room{Free: free, How: how}
	}
	return rooms
}

// buffer returns the size limit of WebGPU buffers. It asks the browser for its adapter only if that matters, and once,
// even if that fails.
func (p *predictor) buffer(ctx context.Context, e estimatedCell, need int64) estimate.Room {
	if need <= estimate.GrantedBuffer {
		return estimate.Room{Free: estimate.GrantedBuffer, How: "guaranteed by every WebGPU adapter"}
	}
	room, _ := once(p.r.cache, [2]string{"buffer", e.engine}, func() (room estimate.Room, err error) {
		if e.device == nil {
			return room, nil
		}
		d, err := e.device(ctx)
		if err == nil { // the launch reports errors
			room = bufferOf(e.Estimate, d)
		}
		return room, err
	})
	return room
}

// bufferOf returns the limit that the engine will get from an adapter; none if the adapter reports none.
func bufferOf(e estimate.Estimate, d record.Device) estimate.Room {
	whole, err := strconv.ParseInt(d.Detail["maxBufferSize"], 10, 64)
	bound, err2 := strconv.ParseInt(d.Detail["maxStorageBufferBindingSize"], 10, 64)
	if err != nil || err2 != nil {
		return estimate.Room{}
	}
	return e.Buffer(whole, bound)
}

// Limits of all current browsers.
const (
	wasmBound = 4 << 30 // 32-bit addresses
	cage      = 4 << 30 // size of V8's pointer compression cage
)

// Rooms returns the available memory of each place; unknown ones are left out.
func Rooms(ctx context.Context, e estimate.Estimate, gpus *gpu.Monitor) map[string]estimate.Room {
	rooms := map[string]estimate.Room{
		estimate.Wasm:     {Free: wasmBound, How: "limit of 32-bit WebAssembly"},
		estimate.Renderer: {Free: cage, How: "limit of V8's heap"},
	}
	if free, how, ok := machine.Room(ctx); ok {
		rooms[estimate.RAM] = estimate.Room{Free: free, How: how}
	}
	if gpus == nil {
		return rooms
	}
	if largest, sum, ok := gpus.Free(ctx); ok {
		rooms[estimate.VRAM] = estimate.Room{Free: largest, How: "free on the GPU with the most free memory"}
		if e.Setup.GPULayers > 0 || e.Setup.TensorParallel > 1 {
			rooms[estimate.VRAM] = estimate.Room{Free: sum, How: "free on all GPUs together"}
		}
	}
	return rooms
}
