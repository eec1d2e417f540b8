package ollama

import (
	"io"
	"slices"
	"strings"
	"sync"

	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
)

// sieve keeps the runners of other models, which somebody else asked a server for, out of what is sampled. One whose
// command line names no file is let through: it may be ours.
type sieve struct {
	attach func(sample.Source) (detach func())

	mu   sync.Mutex
	ours []string // the sums of our model's files, once they are known
	kept []*kept
}

// kept is a source of another model's runner, as far as is known.
type kept struct {
	src    sample.Source
	line   []string // the runner's
	detach func()   // nil: it is not read
}

// take has a source read, or keeps it.
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

// foreign tells whether a process is the runner of a model that is not ours. The caller holds the lock.
func (s *sieve) foreign(line []string) bool {
	return role(0, "", line) == roleRunner &&
		slices.ContainsFunc(line, func(arg string) bool { return strings.Contains(arg, "sha256-") }) &&
		!holds(line, s.ours)
}

// claim says which files our model is made of: its runner is sampled from here on.
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

// drop lets go of a source whose process has ended, or is not followed any more.
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

// keeps tells whether a process is kept out.
func (s *sieve) keeps(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.kept, func(k *kept) bool { return k.detach == nil && k.src.Describe().PID == pid })
}
