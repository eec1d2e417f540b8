package llamacpp

import (
	"slices"
	"strings"
	"testing"
)

func TestQuantizedTypes(t *testing.T) {
	help := []string{"usage: llama-quantize [--help] in out type", "  15  or  Q4_K    : alias for Q4_K_M",
		"  15  or  Q4_K_M  :  4.58G, +0.1754 ppl @ Llama-3-8B", "   1  or  F16     : 14.00G", "          COPY    : only copy"}
	if got := quantizedTypes(help); !slices.Equal(got, []string{"Q4_K", "Q4_K_M", "F16"}) {
		t.Errorf("%v", got)
	}
}

func FuzzQuantizedTypes(f *testing.F) {
	f.Add("  15  or  Q4_K_M  :  4.58G\n  2 or Q4_0:")
	f.Fuzz(func(t *testing.T, help string) {
		for _, name := range quantizedTypes(strings.Split(help, "\n")) {
			if name == "" || len(name) > 40 || strings.ContainsAny(name, " :\t/") || !strings.Contains(help, name) {
				t.Errorf("type %q in %q", name, help)
			}
		}
	})
}
