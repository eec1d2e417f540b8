package main

import (
	"context"
	"fmt"
	"io"

	"llmparity/internal/estimate"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
)

// risk judges an estimate by what is free: here and now, or what was given of another machine.
func (f *estimateFlags) risk(ctx context.Context, e estimate.Estimate) record.Risk {
	rooms := here(ctx, e, nil)
	if f.freeGiB > 0 {
		free := estimate.Room{Free: int64(f.freeGiB * (1 << 30)), How: "--free-gb"}
		rooms[estimate.RAM], rooms[estimate.VRAM] = free, free
		return e.Risk(rooms)
	}
	for _, n := range e.Needs() {
		switch s := e.Setup; {
		case n.Place != estimate.VRAM:
		case s.GPUMemoryGiB > 0:
			rooms[n.Place] = estimate.Room{Free: int64(s.GPUMemoryGiB * float64(max(s.TensorParallel, 1)) * (1 << 30)), How: "--gpu-memory-gb of all devices"}
		default:
			gpus := gpu.Open(ctx, gpu.Options{})
			rooms = here(ctx, e, gpus)
			gpus.Close()
		}
	}
	return e.Risk(rooms)
}

func printRisk(w io.Writer, r record.Risk) {
	fmt.Fprintf(w, "\nRisk of running out of memory: %s\n", r.Level)
	for _, p := range r.Places {
		fmt.Fprint(w, folded(fmt.Sprintf("- %s: %s of %s (%s): %s", p.Name, mebi(p.Need), mebi(p.Free), p.How, p.Level)))
	}
	for _, reason := range r.Reasons {
		fmt.Fprint(w, folded("! "+reason))
	}
	for _, advice := range r.Recommendations {
		fmt.Fprint(w, folded("> "+advice))
	}
}

// mebi is a size for people.
func mebi(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/record.MiB)
}
