package estimate_test

import (
	"fmt"

	"llmparity/internal/models/modelsize"
	"llmparity/internal/predict/estimate"
)

func ExampleOf() {
	m, err := modelsize.FromNumbers(modelsize.Numbers{Parameters: 6.7e9, Layers: 32, Heads: 32, KVHeads: 8,
		Hidden: 4096})
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := estimate.Of(m, estimate.Setup{Engine: estimate.VLLM, Context: 2048, DType: "f16", Quantization: "q4_0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{estimate.Weights, estimate.KVReserved} {
		c := e.Component(name)
		fmt.Printf("%s: %d MiB in %s\n", c.Name, c.Best>>20, c.DType)
	}
	room := map[string]estimate.Room{estimate.VRAM: {Free: 4 << 30, How: "a card of 4 GiB"}}
	risk := e.Risk(room)
	fmt.Println(e.Fit(risk, ""))
	fmt.Println(risk.Level)
	// Output:
	// model_weights: 3594 MiB in q4_0
	// kv_cache: 256 MiB in f16
	// does not fit: needs about 5.5 GiB, 4 GiB of GPU memory available
	// high
}
