package gpu

import (
	"context"
	"math"
)

// Free returns the free memory of the GPU that has most, and of all GPUs together; ok reports whether it is known.
func (m *Monitor) Free(ctx context.Context) (largest, sum int64, ok bool) {
	for _, f := range m.fleets {
		states, _, _, err := f.states.get(ctx, f.guard, new(int))
		if err != nil {
			continue
		}
		for i, u := range f.driver.units() {
			free := states[i].free
			if u.divided || states[i].err != nil || states[i].sane() != nil || math.IsNaN(free) {
				continue // the partitions of a divided GPU have its memory
			}
			largest, sum, ok = max(largest, int64(free)), sum+int64(free), true
		}
	}
	return largest, sum, ok
}
