package noise

import (
	"context"
	"os"

	"llmparity/internal/kit/fault"
)

// sink keeps compilers from leaving out work whose result nobody reads.
var sink struct {
	whole uint64
	real  float64
}

// Machine is the work of a machine without a browser: on one core, as most engines' slowest part is. Files are written
// in a folder.
func Machine(folder string) []Work {
	const steps, turns, block = 100_000_000, 4, 64 << 20
	from, to := make([]byte, block), make([]byte, block)
	for i := range from {
		from[i] = byte(i) // pages that were never written are one and the same
	}
	const file = 16 << 20
	return []Work{
		{Name: "processor, integers", Unit: "G steps/s", Amount: steps / 1e9, Least: 8,
			Do: func(context.Context) error { sink.whole = integers(steps); return nil }},
		{Name: "processor, floating point", Unit: "G steps/s", Amount: steps / 1e9, Least: 8,
			Do: func(context.Context) error { sink.real = reals(steps); return nil }},
		{Name: "memory, copied", Unit: "GiB/s", Amount: turns * block / float64(1<<30), Least: 8,
			Do: func(context.Context) error {
				for range turns {
					copy(to, from)
				}
				return nil
			}},
		{Name: "disk, written and synced", Unit: "MiB/s", Amount: file / (1 << 20), Least: 8,
			Do: func(context.Context) error { return written(folder, from[:file]) }},
	}
}

// integers is xorshift: each step waits for the one before.
func integers(steps int) uint64 {
	x := uint64(88172645463325252)
	for range steps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func reals(steps int) float64 {
	x := 0.5
	for range steps {
		x = x*0.9999999 + 1e-7
	}
	return x
}

// written writes a file, waits until the disk has it, and removes it.
func written(folder string, text []byte) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fault.WriteError(err, folder, "set LLMPARITY_CACHE to another folder")
	}
	f, err := os.CreateTemp(folder, "noise-")
	if err != nil {
		return fault.WriteError(err, folder, "set LLMPARITY_CACHE to another folder")
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(text); err != nil {
		return fault.WriteError(err, folder, "free some space")
	}
	return f.Sync()
}
