package record_test

import (
	"fmt"

	"llmparity/internal/record"
)

// A run's folder is read by any later version, on any machine.
func ExampleOpen() {
	run, err := record.Open("testdata/first")
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
	// first ok
	// llamacpp, launch 1: loaded in 200 ms, 2 tokens
}
