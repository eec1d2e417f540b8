package plan_test

import (
	"fmt"
	"strings"
	"testing"
)

// hundredThousand is a plan of 100,000 cells.
func hundredThousand(exclude string) string {
	list := func(n, step int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprint((i+1)*step))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	return head + "input_lengths: " + list(100, 4) + "\noutput_lengths: " + list(50, 2) +
		"\ncontexts: [512, 1024]\nconcurrency: [1, 2, 4, 8, 16]\n" +
		"kv_cache_dtypes: [f16]\n" + exclude
}

// BenchmarkExpand reads a plan of 100,000 cells, counts them and goes through all.
func BenchmarkExpand(b *testing.B) {
	for name, rules := range map[string]string{"plain": "", "exclude": "exclude: [{engine: webllm, concurrency: 16}]\n",
		"include": "exclude: [{engine: webllm, concurrency: 16}]\ninclude: [{engine: llamacpp, dtype: f16, input_length: [4, 8]}]\n"} {
		text := hundredThousand(rules)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p := parse(b, text)
				n := 0
				for s := range p.Setups() {
					n += s.Cells()
				}
				if n < 80_000 {
					b.Fatal(n)
				}
			}
		})
	}
}
