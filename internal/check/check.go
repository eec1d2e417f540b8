// Package check shortens tests.
package check

import "testing"

// Err ends the test if err is not nil.
func Err(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
