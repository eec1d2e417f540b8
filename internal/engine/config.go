package engine

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
)

// Settings apply to all engines. Each engine uses those that it supports.
type Settings struct {
	Cache    string // the program's cache folder
	Mirror   string // where models of catalogues come from; empty: the public sites
	Threads  int
	DType    string
	KVDType  string            // of the KV cache; empty: the engine's default
	Weights  string            // form of the weights; empty: the engine's default
	Storage  string            // where a browser keeps the model; empty: the engine's default
	Stored   string            // what it has of it before a launch; empty: nothing
	Versions map[string]string // by version axis; missing: the built-in version
	Slots    int               // requests at a time; 0: one
	Keep     bool              // a later prompt may reuse the cache of an earlier one
	Fallback bool              // may run on another device than was asked for
	Timeout  time.Duration
	Watchdog time.Duration // longest time without a sign of life; 0: the engine's default
	// Container that programs are started in, for kinds that can (Kind.Inside); empty: this machine.
	Container string
	Deployment
}

// Deployment is how a server is to be started, for engines that start one (Kind.Deploys). Zero leaves it to the server.
type Deployment struct {
	TensorParallel int     // GPUs that share the model
	Quantization   string  // of the weights, in the server's words
	GPUMemory      float64 // share of each GPU's memory
}

// Config is the configuration of an engine. Its fields are at once flags, keys of a plan's section and properties of
// the section's JSON Schema. It is a pointer to a struct.
type Config interface {
	// Fields point into the Config.
	Fields() []Field
	// Check refuses contradictory flags.
	Check() error
	// CheckPlan refuses an invalid section. The error begins with the key.
	CheckPlan(Settings) error
}

// Completer is a configuration that can write out its defaults for a model, so that the plan repeats the run exactly.
type Completer interface {
	Complete(Settings, models.Model)
}

// Field is one setting of an engine.
type Field struct {
	To       any      // *string, *int, *bool or *[]string, holding the default
	Flag     string   // empty: no flag
	Key      string   // in the plan's section; empty: not in plans
	Help     string   // text of the flag and of the schema
	OneOf    []string // allowed values; nil: any
	Zero     string   // what 0 means
	Only     string   // the one kind that uses it, if several share a configuration; empty: all
	Axis     string   // the plan axis that sets the same thing
	Instead  []string // keys of the section that it overrides
	Required bool     // a section without it is invalid
	Place    bool     // a location on this machine, which does not affect what is measured
	Run      bool     // only commands that run a model have the flag
	Make     bool     // and commands that prepare one
}

// Section is an engine's section of a plan: values by key, each a string, an int or a bool. A list of them is an axis.
type Section map[string]any

// Varied returns the values of a field that is an axis; nil: it is not.
func (s Section) Varied(f Field) (out []any) {
	v, ok := s[f.Key]
	if of := reflect.ValueOf(v); ok && of.Kind() == reflect.Slice && of.Type() != f.value().Type() {
		for i := range of.Len() {
			out = append(out, of.Index(i).Interface())
		}
	}
	return out
}

// With returns a copy with a value; an empty text leaves the engine's default.
func (s Section) With(key string, v any) Section {
	out := maps.Clone(s)
	if out[key] = v; v == "" {
		delete(out, key)
	}
	return out
}

func (f Field) value() reflect.Value { return reflect.ValueOf(f.To).Elem() }

// Take applies a section to a configuration, with the first values of its axes.
func Take(c Config, said Section) {
	for _, f := range c.Fields() {
		if v, ok := said[f.Key]; ok && f.Key != "" {
			if all := said.Varied(f); all != nil {
				v = all[0]
			}
			f.value().Set(reflect.ValueOf(v))
		}
	}
}

// Said returns a configuration as a section.
func Said(c Config) Section {
	out := Section{}
	for _, f := range c.Fields() {
		if v := f.value(); f.Key != "" && !v.IsZero() {
			out[f.Key] = v.Interface()
		}
	}
	return out
}

// Given returns a section overridden by the flags that were given; nil if both are empty.
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

// CheckFlags refuses invalid flags, alone or in combination.
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
				return fault.New(fault.Usage, "use only one", "--%s cannot be combined with --%s", other.Flag, f.Flag)
			}
		}
	}
	return c.Check()
}

// CheckSection refuses a section that is invalid for this kind. The error begins with the field.
func (k *Kind) CheckSection(said Section, s Settings) error {
	c := k.Config()
	fields := c.Fields()
	for _, f := range fields { // a missing key means the engine's default, not the flag's
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

// Field names a key of the section as error messages do.
func (k *Kind) Field(key string) string {
	if k.Root {
		return key
	}
	return k.Section + "." + key
}

// check refuses a value that the field does not allow.
func (f Field) check() error {
	switch v := f.value().Interface().(type) {
	case int:
		if v < 0 {
			return fmt.Errorf("%d is negative; use a positive number, or 0: %s", v, f.Zero)
		}
	case string:
		if last := len(f.OneOf) - 1; v != "" && last >= 0 && !slices.Contains(f.OneOf, v) {
			return fmt.Errorf("unknown value %.60q; use %s%s", v,
				strings.TrimPrefix(strings.Join(f.OneOf[:last], ", ")+" or ", " or "), f.OneOf[last])
		}
	}
	return nil
}

// clone copies a configuration; the copy of nil has the defaults.
func clone(k *Kind, c Config) Config {
	out := k.Config()
	if c != nil {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(c).Elem())
	}
	return out
}
