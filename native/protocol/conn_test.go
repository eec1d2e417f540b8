package protocol

import (
	"context"
	"io"
	"os"
	"testing"
	"time"
)

// A request that was given up while it was written must not take its deadline to the next line, which cancels it.
func TestADeadlineEndsWithItsLine(t *testing.T) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	go func() {
		defer theirs.Close()
		_, _ = io.Copy(io.Discard, theirs) // until ours is closed
	}()
	c := &conn{in: ours}
	for i := range 5000 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_ = c.send(ctx, plainRequest{ID: i, Op: opGenerate}, time.Minute) // it may be given up
		if err := c.send(context.Background(), plainRequest{ID: i, Op: opCancel}, time.Minute); err != nil {
			t.Fatalf("request %d is not cancelled: %v", i, err)
		}
		cancel()
	}
}
