//go:build slow && unix

package main

import "testing"

// The same at more instants than a quick test has time for.
func TestRunsThatAreKilledOftenGoOn(t *testing.T) { killAndResume(t, 50) }
