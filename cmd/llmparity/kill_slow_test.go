//go:build slow && unix

package main

import (
	"slices"
	"testing"
)

// TestKilledRunsResume at more instants.
func TestRunKilledManyTimesResumes(t *testing.T) {
	killAndResume(t, slices.Repeat([]int{1, 2}, 25)...)
}
