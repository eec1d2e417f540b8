package webllm

import (
	"strings"
	"testing"

	"llmparity/browser"
	"llmparity/internal/record"
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
	want := attribution{Weights: 224, Padding: 24, KVReserved: 512, KVUsed: 48, Workspaces: 256 + 4096,
		Unattributed: 112 + 8192 + 5 + 14, Params: 2, KVLayers: 2}
	if a != want {
		t.Errorf("%+v, want %+v", a, want)
	}
	if a := l.attribute(nil, -1); a.KVUsed != record.Absent || a.KVReserved != 0 {
		t.Errorf("attribution of nothing: %+v", a)
	}
	// If a working engine has too few buffers of its KV cache's size, that size is unknown.
	for _, n := range []int64{0, 1} {
		a := l.attribute([]browser.LedgerGroup{
			{Stage: "pipeline", Kind: "buffer", Bytes: 512, Count: 2},
			{Stage: "pipeline", Kind: "buffer", Bytes: 256, Count: n}}, 3)
		if a.KVReserved != record.Absent || a.KVUsed != record.Absent || a.KVLayers != 0 || a.Workspaces != 1024+n*256 {
			t.Errorf("with %d buffers of the cache's size: %+v", n, a)
		}
		for _, v := range a.values() {
			if strings.HasPrefix(v.Name, "kv_") {
				t.Errorf("with %d buffers of the cache's size: %s is %g", n, v.Name, v.Value)
			}
		}
	}
}
