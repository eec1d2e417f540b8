package engine

import (
	"context"
	"fmt"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// Accepter is an engine that can answer "unknown", not only yes or no as Check does.
type Accepter interface {
	Accepts(context.Context, models.Model) Verdict
}

// Confirmer is an engine that can settle an unknown answer by starting something short-lived. say reports slow steps.
type Confirmer interface {
	Confirm(ctx context.Context, m models.Model, say func(string)) error
}

// Accepts says whether an engine of this kind can run a model here. It starts nothing that outlives the call.
func (k *Kind) Accepts(ctx context.Context, e Engine, m models.Model) Verdict {
	switch {
	case m.Format == record.Served && !k.Asks && !e.Caps().Served:
		return Refuse(fault.New(fault.NotSupported, "name a file, or leave the engine out",
			"%s runs models from files; served:%s exists only on a server", e.Name(), m.Name))
	case m.Path == "" && m.Format != record.Served: // not downloaded yet
		if !k.Reads(m.Format) {
			return Refuse(fault.New(fault.BadModel, "leave the engine out", "%s cannot run the %s package %s",
				e.Name(), m.Format, m.Name))
		}
		return Verdict{}
	case m.Format != "" && m.Format != record.Served && !k.Asks && !k.Remote && !k.Reads(m.Format):
		return Refuse(Unread(e.Name(), k, m))
	}
	var v Verdict
	if a, ok := e.(Accepter); ok {
		v = a.Accepts(ctx, m)
	} else {
		v = Refuse(e.Check(ctx, m))
	}
	if m.Unsupported != nil && v.Answer != Refused && v.Answer != Unknown {
		return Undecided("%s decides when it loads the model, because llmparity cannot compute with it: %s", e.Name(),
			fault.What(m.Unsupported))
	}
	return v
}

// Unread refuses a model of a format that an engine does not run.
func Unread(name string, k *Kind, m models.Model) error {
	return fault.New(fault.BadModel, "name the model in another format, or leave the engine out", "%s needs %s; model %s is a %s",
		name, models.Names(k.Formats), m.Name, models.Title(m.Format))
}

// Reader is an engine that loads other files than the model's own, such as a converted package.
type Reader interface {
	Files(models.Model) []string
}

// Loaded describes a model as an engine holds it in memory.
type Loaded struct {
	As           *Memory // nil: unknown
	Path         string  // the GGUF or package folder that is loaded
	Library      string  // model library of a package; empty: unknown
	OnGPU        bool
	DType        string // of the package that a GGUF is converted to; empty: the file's own
	KVDType      string // of the KV cache of that package; empty: the same
	Weights      string // those of that package: as-is, f32 or f16
	PrefillChunk int
	// Device asks for the WebGPU adapter, whose limits bound buffer sizes; nil: there is none.
	Device func(context.Context) (record.Device, error)
}

// Loader is an engine that holds models differently from its Kind, or loads another file.
type Loader interface {
	Loaded(models.Model) Loaded
}

// Loaded describes a model as an engine of this kind holds it, as far as that is known before it is loaded.
func (k *Kind) Loaded(e Engine, m models.Model) Loaded {
	if h, ok := e.(Loader); ok {
		return h.Loaded(m)
	}
	return Loaded{As: k.Memory, Path: m.Path}
}

// Answer says whether something can run here.
type Answer string

const (
	Runs    Answer = "runs"
	Refused Answer = "refused"
	// Unknown: only the engine itself can decide, after it has started.
	Unknown Answer = "unknown"
)

// Verdict is an answer with its reason. The zero Verdict means that it runs.
type Verdict struct {
	Answer Answer
	// Reason says why it is refused or unknown; nil if it runs.
	Reason error
}

// Refuse returns the verdict for err; nil means that it runs.
func Refuse(err error) Verdict {
	if err == nil {
		return Verdict{Answer: Runs}
	}
	return Verdict{Refused, err}
}

// Undecided returns the verdict Unknown; the reason says what will decide.
func Undecided(format string, args ...any) Verdict {
	return Verdict{Unknown, fmt.Errorf(format, args...)}
}

// Err returns why it cannot run; nil if it runs or may run.
func (v Verdict) Err() error {
	if v.Answer == Refused {
		return v.Reason
	}
	return nil
}
