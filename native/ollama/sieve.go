package ollama

import (
	"io"
	"slices"
	"strings"
	"sync"

	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
)

// sieve keeps runners of other models, which other clients use, from being sampled. A runner whose command line names
// no file is sampled: it may be ours.
type sieve struct {
	attach func(sample.Source) (detach func())

	mu   sync.Mutex
	ours []string // hashes of our model's files, once known
	kept []*kept
}

// kept is a source of a runner that seems to belong to another model.
type kept struct {
	src    sample.Source
	line   []string // command line
	detach func()   // nil: not sampled
}

// take samples a source or holds it back.
func (s *sieve) take(src sample.Source) (detach func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := proc.CommandLine(src.Describe().PID)
	if !s.foreign(line) {
		return s.attach(src)
	}
	k := &kept{src: src, line: line}
	s.kept = append(s.kept, k)
	return func() { s.drop(k) }
}

// foreign reports whether a process is the runner of another model. The caller holds the lock.
func (s *sieve) foreign(line []string) bool {
	return role(0, "", line) == roleRunner &&
		slices.ContainsFunc(line, func(arg string) bool { return strings.Contains(arg, "sha256-") }) &&
		!holds(line, s.ours)
}

// claim says which files our model consists of; its runner is sampled from now on.
func (s *sieve) claim(blobs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ours = blobs
	for _, k := range s.kept {
		if k.detach == nil && !s.foreign(k.line) {
			k.detach = s.attach(k.src)
		}
	}
}

// drop forgets a source whose process has ended or is no longer followed.
func (s *sieve) drop(k *kept) {
	s.mu.Lock()
	s.kept = slices.DeleteFunc(s.kept, func(other *kept) bool { return other == k })
	detach := k.detach
	s.mu.Unlock()
	if detach != nil {
		detach()
	} else if c, ok := k.src.(io.Closer); ok {
		_ = c.Close() // it was never read
	}
}

// keeps reports whether a process is held back.
func (s *sieve) keeps(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.kept, func(k *kept) bool { return k.detach == nil && k.src.Describe().PID == pid })
}
