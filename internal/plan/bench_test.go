package plan_test

import (
	"fmt"
	"strings"
	"testing"
)

// tenThousand is a plan of 10,000 cells.
func tenThousand(rules string) string {
	list := func(n, step int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprint((i+1)*step))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	return head + "input_lengths: " + list(50, 4) + "\noutput_lengths: " + list(10, 2) +
		"\ncontexts: [512, 1024]\nconcurrency: [1, 2, 4, 8, 16]\nkv_cache_dtypes: [f16]\n" + rules
}

// BenchmarkExpand reads and expands a plan of 10,000 cells.
func BenchmarkExpand(b *testing.B) {
	for name, rules := range map[string]string{"plain": "", "exclude": "exclude: [{engine: webllm, concurrency: 16}]\n",
		"include": "exclude: [{engine: webllm, concurrency: 16}]\ninclude: [{engine: llamacpp, dtype: f16, " +
			"input_length: [4, 8]}]\n"} {
		text := tenThousand(rules)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p := parse(b, text)
				n := 0
				for s := range p.Setups() {
					n += s.Cells()
				}
				if n < 8_000 {
					b.Fatal(n)
				}
			}
		})
	}
}
