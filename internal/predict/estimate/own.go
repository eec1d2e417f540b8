package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/modelsize"
)

// Setting is a setting that only one runtime has: a field of a type of its own, which must be an int, float64 or bool.
// A bool says that something is off.
type Setting struct {
	Flag, Help string  // of the command; "": it has none
	Key        string  // the name that records use; "": they do not have it
	Most       float64 // largest value
	Or         any     // default; nil: the zero value
	Less       any     // a value that needs less memory; nil: none
	Advice     string  // says so

	get func(Setup) any
	set func(*Setup, any)
}

// Settings returns the settings of all runtimes that have a flag. Runtimes may share one.
func Settings() (out []Setting) {
	for _, r := range runtimes {
		for _, o := range r.settings {
			if !slices.ContainsFunc(out, func(other Setting) bool { return other.Flag == o.Flag }) {
				out = append(out, o)
			}
		}
	}
	return slices.DeleteFunc(out, func(o Setting) bool { return o.Flag == "" })
}

// field makes o the setting of a field.
func field[T any, V int | float64 | bool](at func(*T) *V, o Setting) Setting {
	o.get = func(s Setup) any {
		of := Own[T](s)
		return *at(&of)
	}
	o.set = func(s *Setup, v any) { Change(s, func(of *T) { *at(of) = v.(V) }) }
	return o
}

// Own returns the settings of type T in s.
func Own[T any](s Setup) (of T) {
	for _, v := range s.Own {
		if own, ok := v.(T); ok {
			return own
		}
	}
	return of
}

// Change changes the settings of type T in s. Copies of s keep theirs.
func Change[T any](s *Setup, change func(*T)) {
	of := Own[T](*s)
	change(&of)
	others := slices.DeleteFunc(slices.Clone(s.Own), func(v any) bool {
		_, same := v.(T)
		return same
	})
	s.Own = append(others, of)
}

// fill sets the default.
func (o Setting) fill(s *Setup) {
	if o.Or != nil && slices.Contains([]any{0, 0.0, false}, o.get(*s)) {
		o.set(s, o.Or)
	}
}

// reducible reports whether users can choose Less, and have not.
func (o Setting) reducible(s Setup) bool {
	if s.Engine.Itself {
		return false
	}
	switch less := o.Less.(type) {
	case int:
		return o.get(s).(int) > less
	case bool:
		return o.get(s) != o.Less
	}
	return false
}

// check refuses a value that is out of range.
func (o Setting) check(s Setup) error {
	switch v := o.get(s).(type) {
	case int:
		return modelsize.Within("--"+o.Flag, v, int(o.Most))
	case float64:
		return within("--"+o.Flag, v, o.Most)
	}
	return nil
}

// within refuses a flag that is not from 0 to a maximum.
func within(flag string, value, most float64) error {
	if !(value >= 0 && value <= most) {
		return fault.New(fault.Usage, fmt.Sprintf("use more than 0 and at most %g", most), "%s is %g", flag, value)
	}
	return nil
}

// take reads it from the settings of a record.
func (o Setting) take(s *Setup, settings map[string]string) {
	if o.Key == "" {
		return
	}
	switch v := o.get(*s).(type) {
	case int:
		o.set(s, cmp.Or(number(settings[o.Key]), v))
	case bool:
		o.set(s, settings[o.Key] == "off")
	}
}

// text is the value under the name that records use.
func (o Setting) text(s Setup) string {
	v := o.get(s)
	if off, is := v.(bool); is {
		return onOff[!off]
	}
	return fmt.Sprint(v)
}

var onOff = map[bool]string{false: "off", true: "on"}

// Flag is a setting of s as the value of a flag.
type Flag struct {
	Setting
	Of *Setup
}

// Type names the type for the help.
func (f Flag) Type() string { return fmt.Sprintf("%T", f.get(*f.Of)) }

// String returns the value.
func (f Flag) String() string { return fmt.Sprint(f.get(*f.Of)) }

// Set reads the value that a user gave.
func (f Flag) Set(text string) error {
	var v any
	var err error
	switch f.get(*f.Of).(type) {
	case int:
		var n int64
		n, err = strconv.ParseInt(text, 0, strconv.IntSize) // as flags of package pflag do
		v = int(n)
	case float64:
		v, err = strconv.ParseFloat(text, 64)
	case bool:
		v, err = strconv.ParseBool(text)
	}
	if err == nil {
		f.set(f.Of, v)
	}
	return err
}
