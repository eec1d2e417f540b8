//go:build !linux

package record

import "testing"

// asSomebodyElse does something while nothing in a folder of ours can be written.
func asSomebodyElse(t *testing.T, dir string, do func()) {
	t.Helper()
	readOnly(t, dir, do)
}
