package machine

import (
	"context"

	"llmparity/internal/record"
)

// State is what the machine is like at this moment. It reads a few small files, so that it can be asked before every launch.
func State(ctx context.Context) record.MachineState {
	return record.MachineState{Load1: Load1(ctx)}
}
