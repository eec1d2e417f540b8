//go:build unix

package protocol_test

import (
	"reflect"
	"testing"
	"time"

	"llmparity/internal/depth"
	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
)

const deepAnswer = `{"wall_ns":{"prefill":7000},"notes":["slow"],"files":["x.json"],"rows":[` +
	`{"phase":"decode","layer":3,"module":"layers.3.mlp","kernel":"aten::mm","calls":2,"self_ns":50,"bytes":9},` +
	`{"phase":"decode","layer":3,"module":"layers.3.mlp","kernel":"aten::mm","calls":1,"self_ns":5,"bytes":1},` +
	`{"phase":"decode","layer":null,"module":"","kernel":"Python and dispatch","calls":1,"self_ns":4}],"memory":[` +
	`{"at":"before load","what":"PSS","bytes":100},` +
	`{"at":"after load","layer":3,"module":"layers.3.mlp.up_proj","what":"parameters","bytes":60},` +
	`{"at":"prefill","layer":3,"module":"layers.3","what":"intermediate tensors","bytes":40}]}`

// Operators and memory get the roles of their modules. What a process holds, or a layer while it computes, is no
// role's. A phase has the time that the engine reports, if other work came before it.
func TestProfileIsRead(t *testing.T) {
	s, _ := loadedScript(t, "profiled", healthy)
	p, err := s.(engine.DeepProfiler).Deep(t.Context(), engine.Request{Prompt: "x", MaxTokens: 4}, t.TempDir()+"/x")
	check.Err(t, err)
	want := []depth.Row{
		{Phase: "decode", Layer: 3, Role: depth.FeedForward, Kernel: "aten::mm", Calls: 3, Self: 55, Bytes: 10},
		{Phase: "decode", Layer: depth.NoLayer, Role: depth.Wait, Kernel: "Python and dispatch", Calls: 1, Self: 4},
		{Phase: "before load", Layer: depth.NoLayer, Role: depth.Memory, Kernel: "PSS", Bytes: 100},
		{Phase: "after load", Layer: 3, Role: depth.FeedForward, Kernel: "parameters", Bytes: 60},
		{Phase: "prefill", Layer: 3, Role: depth.Memory, Kernel: "intermediate tensors", Bytes: 40},
	}
	if !reflect.DeepEqual(p.Rows, want) {
		t.Errorf("got  %+v\nwant %+v", p.Rows, want)
	}
	if p.Wall["prefill"] != 7*time.Microsecond || len(p.Wall) != 2 || len(p.Notes) != 1 || len(p.Files) != 1 {
		t.Errorf("%+v", p)
	}
}
