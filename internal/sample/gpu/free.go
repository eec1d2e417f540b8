package gpu

import (
	"context"
	"strings"

	"llmparity/internal/record"
)

// Free returns the free memory of the GPU that has most, and of all GPUs together; ok reports whether it is known.
func (m *Monitor) Free(ctx context.Context) (largest, sum int64, ok bool) {
	parts := map[string]bool{} // divided GPUs: their partitions have the memory
	for _, g := range m.GPUs() {
		if whole, _, part := strings.Cut(g.Role, "."); part {
			parts[whole] = true
		}
	}
	for _, s := range m.Sources() {
		d := s.Describe()
		if number, ok := strings.CutPrefix(d.Role, "gpu"); !ok || number == "" || number[0] < '0' || number[0] > '9' ||
			parts[d.Role] {
			continue // CPU energy, sums over GPUs
		}
		r := record.NewSample()
		if err := s.Read(ctx, &r); err != nil {
			continue
		}
		values := map[string]float64{}
		for _, v := range r.Values {
			values[v.Name] = v.Value
		}
		free, reported := values["memory_free_bytes"]
		if total, has := values["memory_total_bytes"]; !reported && has {
			var used float64
			if used, reported = values["memory_used_bytes"]; reported {
				free = total - used
			}
		}
		if reported {
			largest, sum, ok = max(largest, int64(free)), sum+int64(free), true
		}
	}
	return largest, sum, ok
}
