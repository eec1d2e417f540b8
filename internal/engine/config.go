package engine

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"llmparity/internal/fault"
)

// Settings are what flags and plans say to all engines alike. Each takes what it can heed.
type Settings struct {
	Cache    string // the program's cache folder
	Threads  int
	DType    string
	KVDType  string            // of the KV cache; empty: the engine's own
	Versions map[string]string // of engines that have several, by their axis; the one that is built in of others
	Slots    int               // requests that it must be able to do at once; 0: one
	Keep     bool              // what a prompt left in a cache may serve the next one
	Timeout  time.Duration
	Watchdog time.Duration // how long it may give no sign of life; 0: the engine's own
}

// Config is what a user may choose of an engine. Its fields are flags, keys of a section of plans and properties of
// that section's schema alike.
type Config interface {
	// Fields point into it.
	Fields() []Field
	// Check refuses flags that make no sense together.
	Check() error
	// CheckPlan refuses a section that makes no sense. An error begins with the key.
	CheckPlan(Settings) error
}

// Completer is a configuration that puts in what is chosen by default for a model, so that a run can be repeated by its
// plan.
type Completer interface {
	Complete(Settings, Model)
}

// Field is one setting of an engine.
type Field struct {
	To       any      // where it is kept, with its default: *string, *int, *bool or *[]string
	Flag     string   // empty: it has none
	Key      string   // in the plan's section; empty: it is no part of a plan
	Help     string   // what the flag and the schema say of it
	OneOf    []string // the values that it can have; nil: any
	Zero     string   // what 0 means
	Only     string   // the kind that heeds it, of those that share a configuration; empty: all
	Axis     string   // of plans, which says the same
	Instead  []string // keys of the section whose place it takes
	Required bool     // a section without it makes no sense
	Place    bool     // it says where a part is found, and nothing of what is measured
	Run      bool     // only commands that run a model have the flag
	Make     bool     // and those that make one ready
}

// Section is what a plan says of an engine: values by their keys, each a string, an int or a bool.
type Section map[string]any

func (f Field) value() reflect.Value { return reflect.ValueOf(f.To).Elem() }

// Take has a configuration say what a section does.
func Take(c Config, said Section) {
	for _, f := range c.Fields() {
		if v, ok := said[f.Key]; ok && f.Key != "" {
			f.value().Set(reflect.ValueOf(v))
		}
	}
}

// Said is the section that says what a configuration does.
func Said(c Config) Section {
	out := Section{}
	for _, f := range c.Fields() {
		if v := f.value(); f.Key != "" && !v.IsZero() {
			out[f.Key] = v.Interface()
		}
	}
	return out
}

// Given is a section, and what the flags that were given say in place of it; nil: neither says anything.
func Given(c Config, said Section, given func(flag string) bool) Section {
	out := maps.Clone(said)
	for _, f := range c.Fields() {
		if f.Key == "" || !given(f.Flag) {
			continue
		}
		if out == nil {
			out = Section{}
		}
		out[f.Key] = f.value().Interface()
		if !f.value().IsZero() {
			maps.DeleteFunc(out, func(key string, _ any) bool { return slices.Contains(f.Instead, key) })
		}
	}
	return out
}

// CheckFlags refuses flags that make no sense, by themselves or together.
func CheckFlags(c Config, given func(flag string) bool) error {
	fields := c.Fields()
	for _, f := range fields {
		if err := f.check(); err != nil && f.Flag != "" {
			return fault.New(fault.Usage, "", "--%s: %v", f.Flag, err)
		}
		if !given(f.Flag) || f.value().IsZero() {
			continue
		}
		for _, other := range fields {
			if slices.Contains(f.Instead, other.Key) && given(other.Flag) {
				return fault.New(fault.Usage, "give one of them", "--%s and --%s exclude one another", other.Flag,
					f.Flag)
			}
		}
	}
	return c.Check()
}

// CheckSection refuses what no engine of a kind can be told. An error begins with the field.
func (k *Kind) CheckSection(said Section, s Settings) error {
	c := k.Config()
	fields := c.Fields()
	for _, f := range fields { // what is not said is the engine's own, whatever the flag's default is
		f.value().SetZero()
	}
	Take(c, said)
	for _, f := range fields {
		if err := f.check(); err != nil && f.Key != "" {
			return fmt.Errorf("%s: %w", k.Field(f.Key), err)
		}
	}
	err := c.CheckPlan(s)
	if err != nil && !k.Root {
		return fmt.Errorf("%s.%w", k.Section, err)
	}
	return err
}

// Field names a key of the section as errors do.
func (k *Kind) Field(key string) string {
	if k.Root {
		return key
	}
	return k.Section + "." + key
}

// check refuses a value that the field can't have.
func (f Field) check() error {
	switch v := f.value().Interface().(type) {
	case int:
		if v < 0 {
			return fmt.Errorf("%d, use a positive number, or 0: %s", v, f.Zero)
		}
	case string:
		if last := len(f.OneOf) - 1; v != "" && last >= 0 && !slices.Contains(f.OneOf, v) {
			return fmt.Errorf("%.60q, use %s or %s", v, strings.Join(f.OneOf[:last], ", "), f.OneOf[last])
		}
	}
	return nil
}

// clone is a configuration that says the same.
func clone(k *Kind, c Config) Config {
	out := k.Config()
	to := out.Fields()
	for i, f := range c.Fields() {
		to[i].value().Set(f.value())
	}
	return out
}
