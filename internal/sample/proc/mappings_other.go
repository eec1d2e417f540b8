//go:build !linux

package proc

import (
	"context"
	"errors"

	"llmparity/internal/record"
)

// Mappings can be read on Linux alone.
type Mappings struct{}

// MappingsOf says that they can't be read here.
func MappingsOf(int, string) (*Mappings, error) { return nil, errors.ErrUnsupported }

// Describe is never asked for.
func (*Mappings) Describe() record.Source { return record.Source{} }

// Read is never called.
func (*Mappings) Read(context.Context, *record.Sample) error { return errors.ErrUnsupported }

// Close is never called.
func (*Mappings) Close() error { return nil }

// Highest follows nobody here.
type Highest struct{}

// Follow does nothing.
func (*Highest) Follow([]*Mappings) {}

// Tell does nothing.
func (*Highest) Tell() {}
