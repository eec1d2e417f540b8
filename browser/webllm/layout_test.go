package webllm

import (
	"maps"
	"testing"

	"llmparity/browser"
)

func TestAttributionLeavesUnknownBuffers(t *testing.T) {
	l := layout{params: []int64{100, 100, 4096}, kvToken: 8, layers: 2, kvLayer: 256}
	a := l.attribute([]browser.LedgerGroup{
		{Stage: "upload", Kind: "buffer", Bytes: 112, Count: 3},      // padded, and one too many
		{Stage: "upload", Kind: "buffer", Bytes: 4096 * 2, Count: 1}, // unknown
		{Stage: "pipeline", Kind: "buffer", Bytes: 256, Count: 3},    // a workspace has the size of a layer's cache
		{Stage: "end", Kind: "buffer", Bytes: 4096, Count: 1},        // has the size of a parameter, but too late
		{Stage: "device", Kind: "buffer", Bytes: 5, Count: 1},
		{Stage: "end", Kind: "texture", Bytes: 7, Count: 2},
	}, 3)
	want := map[string]int64{"weights_bytes": 224, "weights_padding_bytes": 24, "weights_count": 2,
		"kv_reserved_bytes": 512, "kv_layers_count": 2, "kv_used_bytes": 48, "workspaces_bytes": 256 + 4096,
		"unattributed_bytes": 112 + 8192 + 5 + 14}
	if !maps.Equal(a, want) {
		t.Errorf("%v, want %v", a, want)
	}
	// If a working engine has too few buffers of its KV cache's size, that size is unknown.
	for _, n := range []int64{0, 1} {
		a := l.attribute([]browser.LedgerGroup{
			{Stage: "pipeline", Kind: "buffer", Bytes: 512, Count: 2},
			{Stage: "pipeline", Kind: "buffer", Bytes: 256, Count: n}}, 3)
		want := map[string]int64{"weights_bytes": 0, "weights_padding_bytes": 0, "weights_count": 0,
			"workspaces_bytes": 1024 + n*256, "unattributed_bytes": 0}
		if !maps.Equal(a, want) {
			t.Errorf("with %d buffers of the cache's size: %v, want %v", n, a, want)
		}
	}
}
