package gguf_test

import (
	"bytes"
	"fmt"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
)

func ExampleRead() {
	var file bytes.Buffer
	if err := tiny.Write(&file); err != nil {
		fmt.Println(err)
		return
	}
	f, err := gguf.Read(bytes.NewReader(file.Bytes()), int64(file.Len()), "tiny.gguf")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	a, err := f.Architecture()
	fmt.Println(a.Name, a.BlockCount, "layers, context", a.ContextLength, err)
	fmt.Println(len(f.Tensors), "tensors, most in", f.Dominant())
	first := f.Tensors[0]
	values, err := f.Floats(first)
	fmt.Println(first.Name, len(values), err)
	// Output:
	// llama 2 layers, context 1024 <nil>
	// 21 tensors, most in F32
	// token_embd.weight 65536 <nil>
}
