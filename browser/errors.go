package browser

import (
	"errors"
	"regexp"

	"llmparity/browser/driver"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// errorOf returns the meaning of a failed call of the page.
func (p *Page) errorOf(err error) error {
	if thrown, ok := errors.AsType[*driver.Thrown](err); ok {
		return p.tab.OnFullDisk(p.explain(p.failure(thrown)))
	}
	return err
}

// failure classifies what the page threw.
func (p *Page) failure(t *driver.Thrown) *engine.Failure {
	return engine.Fail(p.classify(t.Text), "%w", t)
}

// explain adds the wasm's last message to an abort.
func (p *Page) explain(f *engine.Failure) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.Class != record.Crash || p.abort == "" {
		return f
	}
	if p.classify(p.abort) == record.OOM {
		f.Class = record.OOM
	}
	return engine.Fail(f.Class, "%w: the engine's wasm aborted: %s", f.Err, p.abort)
}

var (
	outOfMemory = regexp.MustCompile(`(?i)out of memory|out-of-memory|OutOfMemory|array buffer allocation failed|` +
		`invalid array buffer length|(cannot|could not) allocate|allocation failed`)
	deviceLost = regexp.MustCompile(`(?i)device (was|is) lost|DeviceLost|lost device`)
	// Chrome says "Quota exceeded.", in some places nothing but the error's name, and of a file that it stops to write
	// sometimes only what follows.
	quotaExceeded = regexp.MustCompile(`(?i)QuotaExceeded|quota exceeded|Failed to write data to data pipe|` +
		`No space available for this operation`)
	fetchFailed = regexp.MustCompile(`(?i)failed to fetch|networkerror|network error|net::ERR_`)
	// Without wasm exceptions an error in a wasm cannot be thrown, but aborts.
	wasmAbort  = regexp.MustCompile(`^ExitStatus|RuntimeError: (unreachable|memory access|Aborted|table index)|^Aborted\(`)
	namedError = regexp.MustCompile(`^\w+Error: `)
)

// classify classifies an error message of the engine's script, its wasm or WebGPU.
func (p *Page) classify(text string) record.Class {
	if own := p.site.Classify; own != nil && !quotaExceeded.MatchString(text) {
		if class := own(text); class != "" {
			return class
		}
	}
	switch {
	case quotaExceeded.MatchString(text):
		return record.Quota
	case outOfMemory.MatchString(text):
		return record.OOM
	case deviceLost.MatchString(text):
		return record.DeviceLost
	case fetchFailed.MatchString(text):
		return record.Download
	case wasmAbort.MatchString(text):
		return record.Crash
	}
	return record.Other
}
