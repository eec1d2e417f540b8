// Package childtest sees to it that tests of what starts processes leave nothing behind: it is a package's TestMain.
//
// It knows what package child started by its mark, and what has got rid of that mark it can't see.
package childtest

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"llmparity/internal/child"
)

// Main runs the tests, and panics where they pass and leave a process, a temporary folder or a goroutine.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if pids, dirs := child.Tagged(os.Getpid()), child.Scratches(os.Getpid()); len(pids)+len(dirs) > 0 {
			panic(fmt.Sprintf("left behind: processes %v, folders %q", pids, dirs))
		}
		if err := goleak.Find(); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}
