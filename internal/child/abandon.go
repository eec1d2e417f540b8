package child

import (
	"os"
	"time"
)

// Abandon immediately kills everything that this program started and removes its temporary folders, for a program that
// is about to exit without waiting. Outside Linux it only removes the folders.
func Abandon() {
	const pause, atMost = 5 * time.Millisecond, time.Second
	for deadline := time.Now().Add(atMost); time.Now().Before(deadline); time.Sleep(pause) {
		running := killMarked(ownedBy(os.Getpid()))
		left := Scratches(os.Getpid())
		for _, dir := range left {
			_ = os.RemoveAll(dir) // tried again: a dying process may still write
		}
		if running+len(left) == 0 {
			return
		}
	}
}
