package child_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"llmparity/internal/host/child"
)

// Neither a program that hangs, nor one that prints without end, nor leftover children can block Says.
func TestSaysAlwaysReturns(t *testing.T) {
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := child.Says(soon, "sh", "-c", "sleep 1000 & sleep 1000"); err == nil || soon.Err() == nil {
		t.Errorf("hanging program: %v", err)
	}
	if words, err := child.Says(t.Context(), "sh", "-c", "sleep 1000 & echo done"); err != nil ||
		child.LastLine(words) != "done" {
		t.Errorf("%q, %v", words, err)
	}
	words, err := child.Says(t.Context(), "sh", "-c",
		"echo first; head -c 2000000 /dev/zero | tr '\\0' x; echo; echo last")
	if err != nil || len(words) > child.MostSaid || child.LastLine(words) != "last" {
		t.Errorf("%d bytes, %v", len(words), err)
	}
	if _, err := child.Says(t.Context(), "sh", "-c", "echo sorry >&2; exit 3"); err == nil ||
		!strings.Contains(err.Error(), "sorry") {
		t.Errorf("%v", err)
	}
}
