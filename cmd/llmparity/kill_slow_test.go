//go:build slow && unix

package main

import (
	"slices"
	"testing"
)

// The same at more instants than a quick test has time for.
func TestRunKilledManyTimesResumes(t *testing.T) {
	killAndResume(t, slices.Repeat([]int{1, 2}, 25)...)
}
