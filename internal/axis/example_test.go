package axis_test

import (
	"fmt"

	"llmparity/internal/axis"
	"llmparity/internal/record"
)

func ExampleDiffer() {
	a := record.Cell{Engine: "webllm", Model: record.Model{Name: "tiny", SHA256: "aa"}, MaxTokens: 64}
	b := a
	b.MaxTokens, b.DType = 128, "f16"
	for _, x := range axis.Differ(&a, &b, func(*axis.Axis) bool { return true }) {
		fmt.Printf("%s: %q and %q\n", x.Name, x.Of(&a), x.Of(&b))
	}
	// Output:
	// output_length: "64" and "128"
	// dtype: "" and "f16"
}
