// Package logs reads what engines' programs print for people: lines as they come, and why a program ended.
//
// The only messages that it knows are those for running out of memory, which many programs share. All others are up to
// the engine.
package logs

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"llmparity/internal/record"
)

// Tee writes to several writers. It never fails, because a full disk must not end the program with a closed pipe.
type Tee []io.Writer

func (t Tee) Write(p []byte) (int, error) {
	for _, w := range t {
		_, _ = w.Write(p) // one writer may fail
	}
	return len(p), nil
}

// Lines calls Take for each complete line that is written to it, without the line end.
type Lines struct {
	Max  int // bytes of a line that are kept
	Take func(line string)

	part []byte // incomplete line
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

// LastWords joins the last three lines.
func LastWords(lines []string) string {
	if len(lines) == 0 {
		return "(no output)"
	}
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// scarce are messages about running out of memory: of C++, CUDA, Go, Python, the system, and of servers that check
// beforehand.
var scarce = []string{"out of memory", "failed to allocate", "unable to allocate", "cannot allocate memory",
	"bad_alloc", "memoryerror",
	"cudamalloc failed", "requires more memory", "more system memory"}

// OutOfMemory reports whether a line says that memory ran out.
func OutOfMemory(lines ...string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		line = strings.ToLower(line)
		return slices.ContainsFunc(scarce, func(words string) bool { return strings.Contains(line, words) })
	})
}

// ClassOf classifies the failure of a program that ended by itself, by its last output.
func ClassOf(lines ...string) record.Class {
	if OutOfMemory(lines...) {
		return record.OOM
	}
	return record.Crash
}
