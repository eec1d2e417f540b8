// Package hardware finds what a browser must be started with so that WebGPU reaches a GPU. Some systems need flags, or
// a window. It starts no browser itself.
package hardware

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Way is what a browser is started with beside what users choose.
type Way struct {
	Name   string // for people
	Flags  []string
	Headed bool
}

// Answer is what answered in one way.
type Answer struct{ Way, Said string }

func (a Answer) String() string { return a.Way + ": " + a.Said }

// Search looks for a GPU. P is an open page.
type Search[P any] struct {
	Ways   []Way
	Memory *Memory
	Key    string // of the browser and the drivers, for Memory
	// Open starts the browser and asks for its adapter.
	Open  func(context.Context, Way) (P, record.Device, error)
	Close func(P) error
}

// Nothing is the error that no way has an adapter.
type Nothing struct {
	error
	Tried []string
}

func (n *Nothing) Unwrap() error { return n.error }

// Find returns the page in the first way that has a GPU, and its adapter, which knows what was tried. The way that
// worked last comes first. If none has a GPU, it is the page of the first way that has an adapter, so that callers can
// say what runs there.
func (s Search[P]) Find(ctx context.Context) (page P, d record.Device, err error) {
	known, none := s.Memory.lacks(s.Key)
	if none {
		return s.again(ctx, known)
	}
	var tried []string
	var other *seen[P] // the first that is no GPU
	for _, w := range s.order() {
		p, device, err := s.Open(ctx, w)
		if err != nil {
			said, goesOn := failure(ctx, err)
			if !goesOn || w.Name == s.Ways[0].Name && !isKind(err, fault.NoAdapter) {
				return page, d, errors.Join(err, s.drop(other))
			}
			tried = append(tried, Answer{w.Name, said}.String())
			continue
		}
		if device.Class == record.GPU {
			s.Memory.keep(s.Key, w.Name)
			return p, found(device, w, tried), s.drop(other)
		}
		tried = append(tried, Answer{w.Name, oneAnswer(device)}.String())
		if other == nil {
			other = &seen[P]{p, device, w}
		} else if err := s.Close(p); err != nil {
			return page, d, errors.Join(err, s.drop(other))
		}
	}
	s.Memory.forget(s.Key)
	if other == nil {
		return page, d, &Nothing{fault.New(fault.NoAdapter, "check the GPU's driver, or try --adapter swiftshader",
			"no WebGPU adapter here (tried %s)", strings.Join(tried, "; ")), tried}
	}
	s.Memory.lacking(s.Key, other.way.Name, tried)
	return other.page, found(other.device, other.way, tried), nil
}

// seen is an open page without a GPU.
type seen[P any] struct {
	page   P
	device record.Device
	way    Way
}

func (s Search[P]) drop(other *seen[P]) error {
	if other == nil {
		return nil
	}
	return s.Close(other.page)
}

// again opens the way that was the best of those without a GPU, as this process found out.
func (s Search[P]) again(ctx context.Context, known lack) (page P, d record.Device, err error) {
	w := s.Ways[slices.IndexFunc(s.Ways, func(w Way) bool { return w.Name == known.way })]
	page, d, err = s.Open(ctx, w)
	if err != nil {
		return page, d, err
	}
	return page, found(d, w, known.tried), nil
}

// order returns the ways, with that first that worked last.
func (s Search[P]) order() []Way {
	out, last := slices.Clone(s.Ways), s.Memory.kept(s.Key)
	slices.SortStableFunc(out, func(a, b Way) int {
		switch last {
		case a.Name:
			return -1
		case b.Name:
			return 1
		}
		return 0
	})
	return out
}

// found adds to a device how it was found. What is in the details of another must stay.
func found(d record.Device, w Way, tried []string) record.Device {
	detail := map[string]string{record.DetailWay: w.Name}
	for name, value := range d.Detail {
		detail[name] = value
	}
	d.Detail = detail
	d.SetTried(tried)
	return d
}

// oneAnswer describes an adapter that is no GPU.
func oneAnswer(d record.Device) string {
	text := fmt.Sprintf("%s (%s)", d.Name, d.Class)
	if backend := d.Detail[record.DetailBackend]; backend != "" {
		text = fmt.Sprintf("%s (%s, %s)", d.Name, d.Class, backend)
	}
	return strings.ReplaceAll(text, ";", ",")
}

// failure says why a way has no adapter, and whether another may have one. Without a display there is no window, and
// flags can keep a browser from starting.
func failure(ctx context.Context, err error) (said string, goesOn bool) {
	class := engine.ClassOf(err)
	started := class != record.Start && class != record.Crash
	switch {
	case ctx.Err() != nil:
		return "", false
	case isKind(err, fault.NoAdapter):
		return "no adapter", true
	case isKind(err, fault.NoDisplay):
		return "no display", true
	case started && !isKind(err, fault.NoChrome):
		return "", false
	}
	return "does not start", true
}

func isKind(err error, kind fault.Kind) bool { return fault.Of(err) == kind }
