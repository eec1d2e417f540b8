package record_test

import (
	"fmt"

	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// A run's folder is read by any later version, on any machine.
func ExampleOpen() {
	dir, remove := comparetest.Example()
	defer remove()
	run, err := record.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Meta.Name, run.Status)
	for _, a := range run.Attempts {
		if !a.Counted() {
			continue // a warm-up, or a launch that failed
		}
		load, _ := a.Phase(record.Load)
		first := a.Measured()[0]
		fmt.Printf("%s, launch %d: loaded in %d ms, %d tokens\n", run.CellByID(a.Cell).Engine, a.Repetition,
			(load.EndNS-load.BeginNS)/1e6, len(first.Tokens))
	}
	// Output:
	// example ok
	// llamacpp, launch 1: loaded in 346 ms, 64 tokens
	// llamacpp, launch 2: loaded in 344 ms, 64 tokens
	// llamacpp, launch 3: loaded in 361 ms, 64 tokens
	// llamacpp, launch 4: loaded in 340 ms, 64 tokens
	// llamacpp, launch 5: loaded in 340 ms, 64 tokens
	// llamacpp, launch 6: loaded in 353 ms, 64 tokens
}
