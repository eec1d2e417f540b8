package engine

import (
	"context"
	"slices"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// Accepter is an engine whose answer to whether it can run a model is more than Check's.
type Accepter interface {
	Accepts(context.Context, Model) Verdict
}

// Confirmer is an engine that can decide what it leaves unknown, by starting something that ends again. say is told
// about what takes noticeable time.
type Confirmer interface {
	Confirm(ctx context.Context, m Model, say func(string)) error
}

// Accepts says whether an engine of this kind can run a model here. It starts nothing that stays.
func (k *Kind) Accepts(ctx context.Context, e Engine, m Model) Verdict {
	switch {
	case m.Format == record.Served && !k.Asks && !e.Caps().Served:
		return Refuse(fault.New(fault.NotSupported, "name a file, or leave the engine out",
			"%s runs models from files, and served:%s is one that only a server has", e.Name(), m.Name))
	case m.Path == "" && m.Format != record.Served: // it is not here yet
		if !slices.Contains(k.Formats, m.Format) {
			return Refuse(fault.New(fault.BadModel, "leave the engine out", "%s runs no %s packages, and %s is one",
				e.Name(), m.Format, m.Name))
		}
		return Verdict{}
	}
	var v Verdict
	if a, ok := e.(Accepter); ok {
		v = a.Accepts(ctx, m)
	} else {
		v = Refuse(e.Check(ctx, m))
	}
	if m.Unsupported != nil && v.Answer != Refused && v.Answer != Unknown {
		return Undecided("llmparity does not know the architecture %s; %s decides when it loads the model",
			m.Architecture, e.Name())
	}
	return v
}

// Reader is an engine that reads a model from other files than the model's own.
type Reader interface {
	Files(Model) []string
}

// Held is how an engine has a model in memory.
type Held struct {
	As           *Memory // nil: how is not known
	Path         string  // what it loads: a GGUF, or a package's folder
	Library      string  // beside a package; empty: not known
	OnGPU        bool
	DType        string // of what would be made of a GGUF; empty: its own
	PrefillChunk int
	// Device asks for the WebGPU adapter, whose limits bound buffers; nil: there is none.
	Device func(context.Context) (record.Device, error)
}

// Holder is an engine that has models in memory in another way than its kind, or as another file.
type Holder interface {
	Held(Model) Held
}

// Holds says how an engine of this kind has a model in memory, as far as it is known by now.
func (k *Kind) Holds(e Engine, m Model) Held {
	if h, ok := e.(Holder); ok {
		return h.Held(m)
	}
	return Held{As: k.Memory, Path: m.Path}
}
