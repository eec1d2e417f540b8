// Package fault holds the errors that a user can act on: one line with what is wrong and what to do. Each has a class,
// so that a CI job can tell a missing browser from a missing model, and an exit code.
//
// It does not describe how a launch failed: see engine.Failure.
package fault

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Error is one line for the user. Do is empty if there is no advice.
type Error struct {
	Kind Kind
	What string // what is wrong and where: file, line, field
	Do   string // what to do about it
	Err  error  // the cause, for errors.Is; What already includes its text
	Exit int    // exit code of the user's own command, passed on instead of the class's; else 0
}

func (e *Error) Error() string {
	s := e.What
	if e.Do != "" {
		s += "; " + e.Do
	}
	return OneLine(s)
}

// What returns what is wrong, without advice.
func What(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return OneLine(e.What)
	}
	return OneLine(err.Error())
}

// OneLine returns s with each run of white space replaced by one space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func (e *Error) Unwrap() error { return e.Err }

// New returns an Error without a cause.
func New(kind Kind, do, format string, args ...any) *Error {
	return &Error{Kind: kind, Do: do, What: fmt.Sprintf(format, args...)}
}

// Wrap returns an Error with a cause, whose text follows the message.
func Wrap(kind Kind, err error, do, format string, args ...any) *Error {
	return &Error{Kind: kind, Do: do, What: fmt.Sprintf(format, args...) + ": " + err.Error(), Err: err}
}

// NoSpace reports whether err comes from a full disk or an exhausted quota.
func NoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// WriteError classifies the error of writing to path: DiskFull where there is no space, Unwritable for any other error
// of the file system. do names another place to write to: "name another folder with -o". It returns every other error
// as it is, and one that already has a class.
func WriteError(err error, path, do string) error {
	if _, known := errors.AsType[*Error](err); known || err == nil {
		return err
	}
	kind, cause := Unwritable, err
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		if file.Path == path || strings.HasPrefix(filepath.Base(file.Path), ".") { // the hidden file that becomes path
			cause = file.Err
		}
	} else if link, ok := errors.AsType[*os.LinkError](err); ok {
		cause = link.Err
	} else if !NoSpace(err) {
		return err
	}
	if NoSpace(err) {
		kind, do = DiskFull, "free some space, or "+do
	}
	return &Error{Kind: kind, Do: do, What: fmt.Sprintf("can't write %s: %v", path, cause), Err: err}
}

// Of returns the class of err: empty for nil, Run if it has none. For joined errors it is the class whose exit code has
// priority.
func Of(err error) Kind {
	kind, _ := judge(err)
	return kind
}

// ExitCode returns the program's exit code for err: 0 for nil.
func ExitCode(err error) int {
	kind, passed := judge(err)
	if passed != 0 {
		return passed
	}
	return kind.ExitCode()
}

// First returns the error whose exit code has priority, and a if both have the same.
func First(a, b error) error {
	if a == nil || b != nil && Of(b).before(Of(a)) {
		return b
	}
	return a
}

func judge(err error) (kind Kind, passed int) {
	if err == nil {
		return "", 0
	}
	// Of the errors in a tree, errors.As takes the first; here one with priority counts.
	switch e := any(err).(type) {
	case *Error:
		return cmp.Or(e.Kind, Run), e.Exit
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return judge(inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			k, p := judge(inner)
			if kind == "" || k.before(kind) {
				kind, passed = k, p
			}
		}
		return cmp.Or(kind, Run), passed
	}
	return Run, 0
}
