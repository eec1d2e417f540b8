package depth

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Kernels of real forward passes have the layers that they compute.
func TestPlaces(t *testing.T) {
	const wllama = "norm mul_mat rope mul_mat mul_mat rope set_rows soft_max mul_mat cpy mul_mat add norm mul_mat " +
		"mul_mat glu mul_mat add"
	// The last layer of llama.cpp drops the rows that need no logits.
	last := strings.Replace(wllama, "cpy mul_mat add", "cpy mul_mat get_rows get_rows add", 1)
	for _, c := range []struct {
		name, pass, want string // of each kernel: its layer, and the first letter of its role
	}{
		{"fused kernels", "embed_tokens" + strings.Repeat(" norm_qkv kv_append attend_out norm_gate down_one", 3) +
			" norm_logits rank_tokens", "-e 0a0K0a0f0f 1a1K1a1f1f 2a2K2a2f2f -h-s"},
		{"a last layer of its own", wllama + " " + last + " norm_last mul_mat",
			"0n0a0a0a0a0a0K0a0a0c0a0o0n0f0f0f0f0o 1n1a1a1a1a1a1K1a1a1c1a1c1c1o1n1f1f1f1f1o -n-h"},
		{"matrix products alone", "gather mul_mat mul_mat mul_mat", "-e-m-m-m"},
		{"nothing repeats", "gather norm mul_mat", "-e-n-m"},
		{"one kernel", "norm", "-n"},
	} {
		got := ""
		for _, p := range Places(strings.Fields(c.pass)) {
			layer := "-"
			if p.Layer != NoLayer {
				layer = fmt.Sprint(p.Layer)
			}
			got += layer + string(p.Role)[:1]
		}
		if want := strings.ReplaceAll(c.want, " ", ""); got != want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, want)
		}
	}
}

// Rows of all layers of a kernel are one, and the longest comes first.
func TestKernels(t *testing.T) {
	rows := []Row{{Phase: "decode", Layer: 0, Kernel: "norm", Calls: 1, Self: 3},
		{Phase: "decode", Layer: 0, Kernel: "ffn", Calls: 1, Self: 2},
		{Phase: "decode", Layer: 1, Kernel: "ffn", Calls: 2, Self: 2}}
	want := []Row{{Phase: "decode", Layer: NoLayer, Kernel: "ffn", Calls: 3, Self: 4},
		{Phase: "decode", Layer: NoLayer, Kernel: "norm", Calls: 1, Self: 3}}
	if got := Kernels(rows); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
