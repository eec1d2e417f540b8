//go:build !linux || !cgo

package gpu

import "errors"

var errNoLibrary = errors.New("built without NVML")

func openNVML() (*fleet, error) { return nil, errNoLibrary }
