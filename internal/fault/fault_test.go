package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"llmparity/internal/fault"
)

func ExampleNew() {
	err := fault.New(fault.NoChrome, "install Chromium", "no Chrome is on PATH")
	wrapped := fmt.Errorf("webllm, launch 1: %w", err)
	fmt.Println(wrapped)
	other := errors.New("anything else")
	fmt.Println(fault.Of(wrapped), fault.ExitCode(wrapped), fault.ExitCode(other), fault.ExitCode(nil))
	// Output:
	// webllm, launch 1: no Chrome is on PATH; install Chromium
	// no-browser 4 1 0
}

// If several exit codes apply, the one that counts is the first of 130 and 143, 2, 3, 1, 4, 5.
func TestOneExitCodeOfSeveral(t *testing.T) {
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
		if fault.First(nil, err) != err || fault.First(err, nil) != err {
			t.Errorf("%v beside nothing is not itself", err)
		}
	}
	passed := fmt.Errorf("watching: %w", &fault.Error{What: "sh ended with 7", Exit: 7})
	if fault.ExitCode(passed) != 7 || fault.Of(passed) != fault.Run {
		t.Errorf("a command's own exit code is %d", fault.ExitCode(passed))
	}
}

func TestAnErrorIsOneLineAndKeepsItsCause(t *testing.T) {
	_, cause := os.Open("/nonexistent\nfile")
	err := fault.Wrap(fault.BadModel, cause, "", "the model\ncan't be read")
	if strings.ContainsAny(err.Error(), "\r\n") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q", err)
	}
}
