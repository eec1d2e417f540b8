package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/estimate"
	"llmparity/internal/gguf"
	"llmparity/internal/record"
	"llmparity/internal/tiny/reference"
	"llmparity/native/llamacpp"
	"llmparity/native/ollama"
)

// foretelling is what is foretold of a run's cells. This is where an engine's settings, which it tells itself, meet the
// estimator.
type foretelling struct {
	mu      sync.Mutex               // one that the runner gave up may still be at work
	engines map[string]engine.Engine // by their names in records
	model   engine.Model
	models  map[string]estimate.Model // that were read, by file or package
	texts   func() (*reference.Tokenizer, error)
	tokens  map[string]counted        // of prompts
	by      map[int]estimate.Estimate // by cell: those of engines whose ways are known
	bounds  map[string]estimate.Room  // of WebGPU's buffers, by engine: they don't change; none where nobody told
}

// counted is how many tokens a prompt has; the note says where that is not certain.
type counted struct {
	n    int
	note string
}

func newForetelling(engines []engine.Engine, m engine.Model) *foretelling {
	f := &foretelling{engines: map[string]engine.Engine{}, model: m, models: map[string]estimate.Model{},
		tokens: map[string]counted{},
		by:     map[int]estimate.Estimate{}, bounds: map[string]estimate.Room{}}
	f.texts = sync.OnceValues(func() (*reference.Tokenizer, error) { return tokenizerOf(m) })
	for _, e := range engines {
		f.engines[e.Name()] = e
	}
	return f
}

// foretell says what a cell's memory will be, in an engine that has prepared.
func (f *foretelling) foretell(_ context.Context, c record.Cell) record.Prediction {
	absent := func(why string, args ...any) record.Prediction {
		return record.Prediction{Cell: c.ID, Absent: fmt.Sprintf(why, args...)}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.model.Format == record.Served {
		return absent("the model %s is one that only its server has: no file tells its sizes", f.model.Name)
	}
	m, s, err := f.setup(c.Engine)
	if err != nil {
		return absent("%v", err)
	}
	known := s.Engine != ""
	// weights and keys are the model's own, wherever it runs; that they are laid out anew is llama.cpp's way
	if !known {
		s.Engine, s.Repacks = estimate.LlamaCPP, nil
	}
	n, output, note := f.longest(c)
	s.OutputLen = max(output-1, 0) // the last token is never looked at again, and has no keys and values
	s.InputLen = n
	if s.Context > 0 { // what has no room in it is the launch's to refuse
		s.OutputLen = min(s.OutputLen, s.Context-1)
		s.InputLen = min(n, s.Context-s.OutputLen)
	}
	e, err := estimate.Of(m, s)
	if err != nil {
		return absent("%v", err)
	}
	if known {
		f.by[c.ID] = e
	}
	p := predicted(c.ID, e)
	if note != "" {
		p.Notes = append(p.Notes, note)
	}
	if !known {
		p = loosened(p, c.Engine)
	}
	return p
}

// setup is what runs in an engine, and how; no engine's name where its ways with memory aren't known.
func (f *foretelling) setup(name string) (m estimate.Model, s estimate.Setup, err error) {
	e := f.engines[name]
	s.Repacks = estimate.Repacks()
	switch e := e.(type) {
	case *browser.WebLLM:
		p, ok := e.Prepared(f.model)
		if !ok {
			return m, s, fmt.Errorf("no package was prepared")
		}
		s.Engine, s.OnGPU = estimate.WebLLM, !e.Software()
		if m, err = f.open(p.Dir); err == nil {
			err = m.With(p.Library.Path)
		}
	case *ollama.Ollama:
		if e.Caps().Isolation != record.OfServer {
			s.Engine = estimate.Ollama
		}
		m, err = f.open(f.model.Path)
	case *llamacpp.Engine, *llamacpp.OneShot:
		s.Engine = estimate.LlamaCPP
		m, err = f.open(f.model.Path)
	default:
		m, err = f.open(f.model.Path)
	}
	s.Context = f.model.Context
	if settled, ok := e.(engine.Settled); ok {
		s.Take(settled.Settings(f.model))
	}
	return m, s, err
}

func (f *foretelling) open(path string) (estimate.Model, error) {
	if m, ok := f.models[path]; ok {
		return m, nil
	}
	m, err := estimate.Open(path)
	if err == nil {
		f.models[path] = m
	}
	return m, err
}

// longest gives the tokens of what takes the most room of what a cell asks, prompt and answer.
func (f *foretelling) longest(c record.Cell) (input, output int, note string) {
	count := func(text string, asked int) (int, string) {
		if asked > 0 {
			return asked, ""
		}
		return f.prompted(text)
	}
	input, note = count(c.Prompt, c.InputTokens)
	output = c.MaxTokens
	if c.Traffic == nil {
		return input, output, note
	}
	for _, k := range c.Traffic.Mix {
		if n, of := count(k.Prompt, k.InputTokens); n+k.MaxTokens > input+output {
			input, output, note = n, k.MaxTokens, of
		}
	}
	for _, a := range c.Traffic.Trace {
		if a.InputTokens+a.MaxTokens > input+output {
			input, output = a.InputTokens, a.MaxTokens
		}
	}
	if turns := c.Traffic.Turns; turns > 1 { // the last prompt has all in it that was said before
		input = turns*input + (turns-1)*output
	}
	return input, output, note
}

// mostText is how much of a prompt is looked at: finding tokens takes time that grows with the square of a word's
// length.
const mostText = 8 << 10

// prompted counts a prompt's tokens, once for all engines.
func (f *foretelling) prompted(text string) (n int, note string) {
	if c, ok := f.tokens[text]; ok {
		return c.n, c.note
	}
	c := f.count(text)
	f.tokens[text] = c
	return c.n, c.note
}

func (f *foretelling) count(text string) counted {
	head := text
	if len(head) > mostText {
		head = strings.ToValidUTF8(head[:mostText], "")
	}
	t, err := f.texts()
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

// tokenizerOf reads a model's vocabulary.
func tokenizerOf(m engine.Model) (*reference.Tokenizer, error) {
	if m.Format != "gguf" {
		return nil, fmt.Errorf("no vocabulary of a %s model is read", m.Format)
	}
	file, err := gguf.Open(m.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	v, err := file.Vocabulary()
	if err != nil {
		return nil, err
	}
	return reference.NewTokenizer(v), nil
}

// predicted puts an estimate into the record's words, by the definitions of what is measured.
func predicted(cell int, e estimate.Estimate) record.Prediction {
	p := record.Prediction{Cell: cell, Source: e.Model.Source, Setup: e.Settings(), TokenB: e.PerToken,
		Notes: e.Warnings}
	for _, c := range e.AsMeasured() {
		p.Parts = append(p.Parts, record.Foretold{Name: c.Name, Low: c.Low, Best: c.Best, High: c.High, DType: c.DType,
			Method:     c.Method,
			Confidence: string(c.Confidence)})
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
		c.Confidence, c.Method = string(estimate.Low), "if "+name+" has it as the file or llama.cpp would: "+c.Method
		p.Parts = append(p.Parts, c)
	}
	for setting := range p.Setup {
		if setting != "context" && setting != "weights_dtype" && setting != "kv_dtype" {
			delete(p.Setup, setting)
		}
	}
	p.Notes = append(p.Notes, "how "+name+" has memory is not known: no workspaces, no program and no sum are foretold")
	return p
}
