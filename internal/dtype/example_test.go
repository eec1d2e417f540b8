package dtype_test

import (
	"fmt"

	"llmparity/internal/dtype"
)

func ExampleNamed() {
	d, ok := dtype.Named("q4_0")
	fmt.Println(d.Name, ok, d.Bits(), "bits a value")
	fmt.Println(d.Size(2, 64), "bytes for two rows of 64 values")
	fmt.Println(dtype.Canonical("bfloat16"), dtype.Canonical("torch.float16"))
	// Output:
	// q4_0 true 4.5 bits a value
	// 72 bytes for two rows of 64 values
	// bf16 f16
}

func ExamplePackedAs() {
	p, ok := dtype.PackedAs("q4f16_1")
	fmt.Println(ok, p.GGUF(), "with everything else in", p.Plain.Name)
	// Output:
	// true q4_0 with everything else in f16
}
