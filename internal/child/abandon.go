package child

import (
	"os"
	"time"
)

// Abandon ends everything that this program has started, at once, and removes its temporary folders: for a program that
// is about to exit and waits for nothing else. Off Linux it removes the folders alone.
func Abandon() {
	const pause, atMost = 5 * time.Millisecond, time.Second
	for deadline := time.Now().Add(atMost); time.Now().Before(deadline); time.Sleep(pause) {
		running := endTagged()
		left := Scratches(os.Getpid())
		for _, dir := range left {
			_ = os.RemoveAll(dir) // tried again: a process that is being ended may still write
		}
		if running+len(left) == 0 {
			return
		}
	}
}
