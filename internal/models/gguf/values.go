package gguf

import (
	"fmt"
	"reflect"
)

// want returns the error for a value that is missing or has another type.
func (f *File) want(key, what string) error {
	v, ok := f.Lookup(key)
	if !ok {
		return f.bad(again, "metadata %s is missing, want %s", key, what)
	}
	return f.bad(again, "metadata %s is %s, want %s", key, brief(v), what)
}

// brief formats a value for an error, shortened.
func brief(v any) string {
	s := fmt.Sprintf("%T %v", v, v)
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return s
}

// Uint returns an integer of any width that is not negative.
func (f *File) Uint(key string) (uint64, error) {
	v, _ := f.Lookup(key)
	if n, ok := unsigned(v); ok {
		return n, nil
	}
	return 0, f.want(key, "an integer of at least 0")
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

// Float returns a floating-point number.
func (f *File) Float(key string) (float64, error) {
	v, _ := f.Lookup(key)
	if r := reflect.ValueOf(v); r.CanFloat() {
		return r.Float(), nil
	}
	return 0, f.want(key, "a float")
}

// Text returns a string.
func (f *File) Text(key string) (string, error) { return typed[string](f, key, "a string") }

// Texts returns an array of strings.
func (f *File) Texts(key string) ([]string, error) {
	return typed[[]string](f, key, "an array of strings")
}

func typed[T any](f *File, key, what string) (T, error) {
	v, _ := f.Lookup(key)
	if t, ok := v.(T); ok {
		return t, nil
	}
	var none T
	return none, f.want(key, what)
}
