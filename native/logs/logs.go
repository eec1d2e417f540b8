// Package logs reads what the programs of engines print for people: its lines as they come, and, once a program has
// ended, why.
//
// It knows the words of no program but those for memory that ran out, which many share; what else a line means is its
// engine's to know.
package logs

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"llmparity/internal/record"
)

// Tee hands on what a program prints to all of them. It never fails: a full disk must not end the program by a closed
// pipe.
type Tee []io.Writer

func (t Tee) Write(p []byte) (int, error) {
	for _, w := range t {
		_, _ = w.Write(p) // what matters goes to more than one
	}
	return len(p), nil
}

// Lines gives every line that is written to it to Take, without its end, once it is whole.
type Lines struct {
	Max  int // how much of a line is kept, in bytes
	Take func(line string)

	part []byte // a line that is not whole yet
}

// Write never fails.
func (l *Lines) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if room := l.Max - len(l.part); room > 0 {
			l.part = append(l.part, line[:min(room, len(line))]...)
		}
		if rest = after; !whole {
			break
		}
		text := string(l.part)
		l.part = l.part[:0]
		l.Take(text)
	}
	return len(b), nil
}

// LastWords are the last three lines on one.
func LastWords(lines []string) string {
	if len(lines) == 0 {
		return "it said nothing"
	}
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// scarce are words for memory that ran out: of C++, CUDA, Go, Python, the system, and of servers that look before they
// ask for it.
var scarce = []string{"out of memory", "failed to allocate", "unable to allocate", "cannot allocate memory",
	"bad_alloc", "memoryerror",
	"cudamalloc failed", "requires more memory", "more system memory"}

// OutOfMemory tells whether one of the lines says that memory ran out.
func OutOfMemory(lines ...string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		line = strings.ToLower(line)
		return slices.ContainsFunc(scarce, func(words string) bool { return strings.Contains(line, words) })
	})
}

// ClassOf is how a program failed that ended by itself, by its last words.
func ClassOf(lines ...string) record.Class {
	if OutOfMemory(lines...) {
		return record.OOM
	}
	return record.Crash
}
