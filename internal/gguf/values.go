package gguf

import (
	"fmt"
	"reflect"
	"strconv"
)

func quote(s string) string { return strconv.Quote(s) }

// want makes the error for a value that is missing or of another type.
func (f *File) want(key, what string) error {
	v, ok := f.Lookup(key)
	if !ok {
		return f.bad(again, "metadata %s is missing; %s is needed", key, what)
	}
	return f.bad(again, "metadata %s is %s; %s is needed", key, brief(v), what)
}

// brief shows a value in an error without printing a whole vocabulary.
func brief(v any) string {
	s := fmt.Sprintf("%T %v", v, v)
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return s
}

// Uint gives a whole number that isn't negative, of any width.
func (f *File) Uint(key string) (uint64, error) {
	v, _ := f.Lookup(key)
	if n, ok := unsigned(v); ok {
		return n, nil
	}
	return 0, f.want(key, "a whole number, not negative,")
}

func unsigned(v any) (uint64, bool) {
	switch r := reflect.ValueOf(v); {
	case r.CanUint():
		return r.Uint(), true
	case r.CanInt():
		return uint64(r.Int()), r.Int() >= 0
	}
	return 0, false
}

// Float gives a floating-point number.
func (f *File) Float(key string) (float64, error) {
	v, _ := f.Lookup(key)
	switch v := v.(type) {
	case float32:
		return float64(v), nil
	case float64:
		return v, nil
	}
	return 0, f.want(key, "a float")
}

// Text gives a string.
func (f *File) Text(key string) (string, error) {
	v, _ := f.Lookup(key)
	if s, ok := v.(string); ok {
		return s, nil
	}
	return "", f.want(key, "a string")
}

// Texts gives an array of strings.
func (f *File) Texts(key string) ([]string, error) {
	v, _ := f.Lookup(key)
	if s, ok := v.([]string); ok {
		return s, nil
	}
	return nil, f.want(key, "an array of strings")
}
