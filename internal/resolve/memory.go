package resolve

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"llmparity/internal/engine"
	"llmparity/internal/estimate"
	"llmparity/internal/model"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
	"llmparity/internal/tokenizer"
)

// Memory is how an engine has a model in memory, in the estimator's words.
type Memory struct {
	Path    string // what it loads: a GGUF, or a package's folder; empty: a model of the catalogue that is not here
	Library string // the model library beside a package; empty: not known
	// Setup is what the engine does of itself, to which its settings are added. Its Engine is nil where its ways with
	// memory are not known: then weights and KV cache alone are predicted, which are the model's own.
	Setup estimate.Setup
	// Device asks for the WebGPU adapter, whose limits bound buffers; nil: there is none.
	Device func(context.Context) (record.Device, error)
}

// estimates is what was read for the estimator. What the runner gave up may still be at work, so there is a lock.
type estimates struct {
	mu     sync.Mutex
	models map[[2]string]estimate.Model       // by path, or name, and library
	tokens memo[string, *tokenizer.Tokenizer] // by path
	counts memo[textKey, counted]
}

// counted is how many tokens a prompt has; the note says where that is not certain.
type counted struct {
	n    int
	note string
}

// predictor predicts the memory of a setup's cells, and judges whether it is there.
type predictor struct {
	r      *Resolver
	s      *Setup
	by     map[int]estimatedCell    // those of engines whose ways are known
	bounds map[string]estimate.Room // of WebGPU's buffers, by engine; with nothing free where it is not known
}

func newPredictor(r *Resolver, s *Setup) *predictor {
	return &predictor{r: r, s: s, by: map[int]estimatedCell{}, bounds: map[string]estimate.Room{}}
}

type estimatedCell struct {
	estimate.Estimate
	engine string
	device func(context.Context) (record.Device, error)
}

// how is an engine's memory with the setup's model, as far as it is known by now, and the model as the estimator reads
// it.
func (r *Resolver) how(ctx context.Context, e Engine, m engine.Model) (how Memory, of estimate.Model, err error) {
	if m.Format == record.Served {
		return how, of, fmt.Errorf("the model %s is one that only its server has: no file tells its sizes", m.Name)
	}
	if how, err = e.Memory(m); err != nil {
		return how, of, err
	}
	key := [2]string{how.Path, how.Library}
	if how.Path == "" {
		key[0] = m.Name
	}
	of, known := r.estimates.models[key]
	if !known {
		if how.Path == "" {
			of, _, err = r.Models.Estimated(ctx, m.Name)
		} else if of, err = estimate.Open(how.Path); err == nil && how.Library != "" {
			err = of.With(how.Library)
		}
		if err != nil {
			return how, of, err
		}
		r.estimates.models[key] = of
	}
	how.Setup.Context = m.Context
	if settled, ok := e.Engine.(engine.Settled); ok {
		if settings := settled.Settings(m); settings != nil {
			how.Setup.Take(settings)
		}
	}
	return how, of, nil
}

// estimated is the estimate of a cell that asks for so many tokens.
func estimated(how Memory, of estimate.Model, input, output int) (estimate.Estimate, error) {
	s := how.Setup
	// the last token is never looked at again, and has no keys and values
	s.InputLen, s.OutputLen = input, max(output-1, 0)
	if s.Context > 0 { // what has no room in it is the launch's to refuse
		s.OutputLen = min(s.OutputLen, s.Context-1)
		s.InputLen = min(input, s.Context-s.OutputLen)
	}
	return estimate.Of(of, s)
}

// predict says what a cell's memory will be, in an engine that has prepared.
func (p *predictor) predict(ctx context.Context, c record.Cell) record.Prediction {
	p.r.estimates.mu.Lock()
	defer p.r.estimates.mu.Unlock()
	absent := func(err error) record.Prediction { return record.Prediction{Cell: c.ID, Absent: err.Error()} }
	e := p.engine(c.Engine)
	how, of, err := p.r.how(ctx, e, p.s.Model)
	if err != nil {
		return absent(err)
	}
	input, output, note := p.r.longest(p.s.Model, c.Prompt, c.InputTokens, c.MaxTokens, c.Traffic)
	est, err := estimated(how, of, input, output)
	if err != nil {
		return absent(err)
	}
	out := predicted(c.ID, est)
	if note != "" {
		out.Notes = append(out.Notes, note)
	}
	if how.Setup.Engine == nil {
		return loosened(out, c.Engine)
	}
	p.by[c.ID] = estimatedCell{est, c.Engine, how.Device}
	return out
}

func (p *predictor) engine(name string) Engine {
	i := slices.IndexFunc(p.s.launch.set.engines, func(e Engine) bool { return e.Name() == name })
	return p.s.launch.set.engines[i]
}

// longest gives the tokens of what takes the most room of what a cell asks, prompt and answer.
func (r *Resolver) longest(m engine.Model, prompt string, in, out int, t *record.Traffic) (
	input, output int, note string) {
	count := func(text string, asked int) (int, string) {
		if asked > 0 {
			return asked, ""
		}
		return r.counted(m, text)
	}
	input, note = count(prompt, in)
	output = out
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
	if t.Turns > 1 { // the last prompt has all in it that was said before
		input = t.Turns*input + (t.Turns-1)*output
	}
	return input, output, note
}

// mostText is how much of a prompt is looked at: finding tokens takes time that grows with the square of a word's
// length.
const mostText = 8 << 10

// counted counts a prompt's tokens, once for all engines.
func (r *Resolver) counted(m engine.Model, text string) (n int, note string) {
	c, _ := r.estimates.counts.get(textKey{m.Path, text}, func() (counted, error) {
		return r.countPrompt(m, text), nil
	})
	return c.n, c.note
}

func (r *Resolver) countPrompt(m engine.Model, text string) counted {
	head := text
	if len(head) > mostText {
		head = strings.ToValidUTF8(head[:mostText], "")
	}
	t, err := r.estimates.tokens.get(m.Path, func() (*tokenizer.Tokenizer, error) { return model.Tokenizer(m) })
	if err != nil {
		return counted{max(len(text)/4, 1), "the prompt's tokens are not known here: a quarter of its bytes is assumed"}
	}
	n := max(len(t.Prompt(head)), 1)
	if head == text {
		return counted{n: n}
	}
	return counted{int(float64(n) * float64(len(text)) / float64(max(len(head), 1))),
		fmt.Sprintf("the prompt's tokens are those of its first %d bytes, in proportion", mostText)}
}

// predicted puts an estimate into the record's words, by the definitions of what is measured.
func predicted(cell int, e estimate.Estimate) record.Prediction {
	p := record.Prediction{Cell: cell, Source: e.Model.Source, Setup: e.Settings(), TokenB: e.PerToken,
		Notes: e.Warnings}
	for _, c := range e.AsMeasured() {
		p.Parts = append(p.Parts, record.Predicted{Name: c.Name, Low: c.Low, Best: c.Best, High: c.High, DType: c.DType,
			Method: c.Method, Confidence: string(c.Confidence)})
	}
	return p
}

// loosened leaves of a prediction what is the model's own, whatever runs it.
func loosened(p record.Prediction, name string) record.Prediction {
	parts := p.Parts
	p.Parts = nil
	for _, c := range parts {
		if c.Name != estimate.Weights && c.Name != estimate.KVReserved && c.Name != estimate.KVUsed {
			continue
		}
		c.Confidence = string(estimate.Low)
		c.Method = "if " + name + " has it as the file or llama.cpp would: " + c.Method
		p.Parts = append(p.Parts, c)
	}
	for setting := range p.Setup {
		if setting != "context" && setting != "weights_dtype" && setting != "kv_dtype" {
			delete(p.Setup, setting)
		}
	}
	p.Notes = append(p.Notes,
		"how "+name+" has memory is not known: no workspaces, no program and no sum are foretold")
	return p
}

// judge says whether what was predicted of a cell fits into what is free now.
func (p *predictor) judge(ctx context.Context, predicted record.Prediction, gpus *gpu.Monitor) record.Risk {
	if predicted.Absent != "" { // who still looks for it isn't waited for
		return estimate.Unjudged("nothing is foretold: " + predicted.Absent)
	}
	p.r.estimates.mu.Lock()
	defer p.r.estimates.mu.Unlock()
	e, ok := p.by[predicted.Cell]
	if !ok {
		return estimate.Unjudged("how much the engine takes in all is not foretold")
	}
	rooms := Rooms(ctx, e.Estimate, gpus)
	for _, n := range e.Needs() {
		if n.Place == estimate.Buffer {
			if room, ok := p.buffer(ctx, e, n.Best); ok {
				rooms[n.Place] = room
			}
		}
	}
	return e.Risk(rooms)
}

// buffer is how large a buffer of WebGPU's may be. The browser is asked for its adapter only where that can matter, and
// once, whatever comes of it: before the next cell it would fail in the same way, and take as long.
func (p *predictor) buffer(ctx context.Context, e estimatedCell, need int64) (estimate.Room, bool) {
	if need <= estimate.GrantedBuffer {
		return estimate.Room{Free: estimate.GrantedBuffer, How: "every WebGPU adapter has buffers of so much"}, true
	}
	room, asked := p.bounds[e.engine]
	if !asked && e.device != nil {
		if d, err := e.device(ctx); err == nil { // an error is the launch's to tell
			room, _ = bufferOf(d)
		}
		p.bounds[e.engine] = room
	}
	return room, room.Free > 0
}

// bufferOf is what WebLLM will have of an adapter.
func bufferOf(d record.Device) (estimate.Room, bool) {
	whole, err := strconv.ParseInt(d.Detail["maxBufferSize"], 10, 64)
	bound, err2 := strconv.ParseInt(d.Detail["maxStorageBufferBindingSize"], 10, 64)
	if err != nil || err2 != nil {
		return estimate.Room{}, false
	}
	return estimate.Grants(whole, bound), true
}
