// Package childtest provides a TestMain that checks that tests leave no processes behind.
//
// It finds processes of package child by their mark, and a browser's processes, which overwrite it, by their command
// lines. It cannot find processes without either.
package childtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"llmparity/internal/host/child"
)

// Main runs the tests, and panics if they pass but leave a process, a temporary folder or a goroutine.
func Main(m *testing.M) { os.Exit(leaving(m.Run())) }

// Browsers is Main for tests that share browsers, which end closes. Their temporary folder must be empty at the end;
// its path is short, so that a browser's socket fits.
func Browsers(m *testing.M, end func() error) {
	temporary, err := os.MkdirTemp("", "lp")
	if err == nil {
		err = os.Setenv("TMPDIR", temporary)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	if err := end(); err != nil {
		fmt.Println("closing what the tests share:", err)
		code = 1
	}
	code = leaving(code)
	left, err := os.ReadDir(temporary)
	if err = errors.Join(err, os.RemoveAll(temporary)); code == 0 && (err != nil || len(left) > 0) {
		panic(fmt.Sprintf("left in the temporary folder: %v %v", left, err))
	}
	os.Exit(code)
}

func leaving(code int) int {
	if code == 0 {
		if left := Left(); len(left) > 0 {
			panic(fmt.Sprintf("left behind: %q", left))
		}
		// a server that closes a connection waits for half a second before it does
		if err := goleak.Find(goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")); err != nil {
			panic(err)
		}
	}
	return code
}

// Left lists our folders and processes.
func Left() []string {
	left := child.Scratches(os.Getpid())
	for _, pid := range child.Tagged(os.Getpid()) {
		left = append(left, fmt.Sprintf("/proc/%d", pid))
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, l := range lines {
		text, err := os.ReadFile(l)
		if err == nil && strings.Contains(string(text), fmt.Sprintf("/llmparity-%d-", os.Getpid())) {
			left = append(left, filepath.Dir(l))
		}
	}
	return left
}
