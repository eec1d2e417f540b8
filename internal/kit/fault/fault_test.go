package fault_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
)

// If several exit codes apply, the program exits with the first of 130, 143, 2, 3, 1, 4, 5.
func TestExitCodeHasPriority(t *testing.T) {
	missing, gate := fault.New(fault.NoChrome, "", "none"), fault.New(fault.Gate, "", "fails")
	usage, open := fault.New(fault.UnknownEngine, "", "which"), fault.New(fault.Inconclusive, "", "no baseline run")
	ended, launch := fault.New(fault.Interrupted, "", "interrupted"), errors.New("the browser crashed")
	last := []error{ended, usage, gate, launch, missing, open}
	for i, err := range last {
		for _, later := range last[i:] {
			for _, both := range []error{errors.Join(err, later), errors.Join(later, err),
				fmt.Errorf("both sides: %w", errors.Join(nil, later, err)), fault.First(err, later),
				fault.First(later, err)} {
				if fault.ExitCode(both) != fault.ExitCode(err) || fault.Of(both) != fault.Of(err) {
					t.Errorf("%v beside %v: exit code %d, class %s", err, later, fault.ExitCode(both), fault.Of(both))
				}
			}
		}
		if !errors.Is(fault.First(nil, err), err) || !errors.Is(fault.First(err, nil), err) {
			t.Errorf("First(%v, nil) is another error", err)
		}
	}
	passed := fmt.Errorf("watching: %w", &fault.Error{What: "sh ended with 7", Exit: 7})
	if fault.ExitCode(passed) != 7 || fault.Of(passed) != fault.Run {
		t.Errorf("a command's own exit code is %d", fault.ExitCode(passed))
	}
}

func TestErrorIsOneLineAndKeepsCause(t *testing.T) {
	_, cause := os.Open("/nonexistent\nfile")
	err := fault.Wrap(fault.BadModel, cause, "", "the model\ncan't be read")
	if strings.ContainsAny(err.Error(), "\r\n") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q", err)
	}
}

func TestWriteErrorSaysWhereElseToWrite(t *testing.T) {
	other, classified := errors.New("not of the file system"), fault.New(fault.Download, "", "gone")
	for _, c := range []struct {
		err  error
		kind fault.Kind
		want string
	}{
		{&fs.PathError{Op: "open", Path: "out", Err: syscall.EACCES}, fault.Unwritable,
			"can't write out: permission denied; use -o"},
		{&fs.PathError{Op: "write", Path: "x/.new-1", Err: syscall.ENOSPC}, fault.DiskFull,
			"can't write out: no space left on device; free some space, or use -o"},
		{&os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.EDQUOT}, fault.DiskFull,
			"can't write out: disk quota exceeded; free some space, or use -o"},
		{&fs.PathError{Op: "mkdir", Path: "out/logs", Err: syscall.EROFS}, fault.Unwritable,
			"can't write out: mkdir out/logs: read-only file system; use -o"},
		{other, fault.Run, "not of the file system"},
		{fmt.Errorf("fetching: %w", classified), fault.Download, "fetching: gone"},
	} {
		err := fault.WriteError(c.err, "out", "use -o")
		if err.Error() != c.want || fault.Of(err) != c.kind || !errors.Is(err, c.err) {
			t.Errorf("%v: %v (%s), want %s (%s)", c.err, err, fault.Of(err), c.want, c.kind)
		}
	}
	if fault.WriteError(nil, "out", "") != nil {
		t.Error("an error without a cause")
	}
}

// Help and reference are made of Classes and Codes: every class that is declared must be there.
func TestClassesAreComplete(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "kind.go", nil, 0)
	check.Err(t, err)
	var declared []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if of, ok := v.Type.(*ast.Ident); ok && of.Name == "Kind" {
				declared = append(declared, strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`))
			}
		}
		return true
	})
	var listed []string
	for _, c := range fault.Classes {
		listed = append(listed, string(c.Kind))
		if !slices.ContainsFunc(fault.Codes, func(of fault.Code) bool { return of.Number == c.Kind.ExitCode() }) {
			t.Errorf("%s: no exit code %d", c.Kind, c.Kind.ExitCode())
		}
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if !slices.Equal(declared, listed) || len(declared) < 20 {
		t.Errorf("declared %q, listed %q", declared, listed)
	}
	if got := fault.Precedence(); got != "130, 143, 2, 3, 1, 4, 5" {
		t.Error(got)
	}
}
