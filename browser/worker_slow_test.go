//go:build slow

package browser

import "testing"

// The whole suite once more, in a worker; TestTheWorkerIsMeasuredWhereItIs and the troubles hold every day what differs
// there.
func TestWebLLMInAWorker(t *testing.T) { conformance(t, WorkerThread) }
