package evidence

import (
	"strconv"

	"llmparity/internal/axis"
)

// Reported is something that an engine reports of itself: cells of one engine can differ in it although they request
// the same. What they request is in internal/axis.
type Reported struct {
	Axis  string // the axis that requests it; empty: none does
	Value func(*Setup) string
	Word  func(*Setup) string // its value in a label; nil: labels omit it
}

// AllReported lists what engines report, in the order of labels.
func AllReported() []Reported {
	return []Reported{
		{Value: (*Setup).Version, Word: (*Setup).ShortVersion},
		{Value: (*Setup).Library, Word: (*Setup).ShortLibrary},
		{Axis: axis.DType, Value: func(s *Setup) string { return s.Policy("weights_dtype") }, Word: (*Setup).DTypes},
		{Axis: axis.KVDType, Value: func(s *Setup) string { return s.Policy("kv_dtype") }},
		{Axis: axis.Context, Value: func(s *Setup) string { return strconv.Itoa(s.Context()) }},
		{Axis: axis.Threads, Value: (*Setup).Threads, Word: (*Setup).Threads},
		{Value: (*Setup).Worker, Word: (*Setup).Worker},
		{Value: (*Setup).Browser, Word: (*Setup).Browser},
		{Value: (*Setup).device, Word: (*Setup).On},
	}
}

func (s *Setup) device() string {
	if s.Device == nil {
		return ""
	}
	return string(s.Device.Class) + " " + s.Device.Name
}

// Requested is a cell's value of an axis, for people.
func (s *Setup) Requested(name string) string { return axis.Named(name).Value(&s.Spec) }
