package wllama

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"llmparity/browser"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
	"llmparity/native/logs"
)

// noLog is what is known before a load.
var noLog = logs.Load{Offloaded: -1}

// told is what the script says of a load.
type told struct {
	Log     []string `json:"log"`
	Threads int      `json:"threads"`
	Workers int      `json:"workers"`
	Version string   `json:"version"` // of llama.cpp
}

// lineLimit is how much of a line of the log is read.
const lineLimit = 4096

// ran returns what follows from the log of a load: which device computes, and where memory is.
func (r *runtime) ran(m models.Model, adapter record.Device, l *layout) func(*browser.Page, json.RawMessage) (
	*browser.Ran, error) {
	return func(p *browser.Page, raw json.RawMessage) (*browser.Ran, error) {
		var t told
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, fmt.Errorf("wllama's log: %w", err)
		}
		e := r.engine
		p.Got(ran.With(ran.Threads, e.threads(), t.Threads,
			fmt.Sprintf("wllama, with %d workers", t.Workers)))
		loads := logs.NewLoads(lineLimit, func(line string) string { return line })
		fmt.Fprintln(loads, strings.Join(t.Log, "\n"))
		said := loads.Said()
		l.said.Store(&said)
		onGPU := !said.OnCPU()
		policy := e.policy(m, said)
		policy["backend"] = map[bool]string{false: WASM, true: WebGPU}[onGPU]
		policy["gpu_layers"] = said.LayersText(0)
		policy["context"] = strconv.Itoa(said.Context)
		policy["repacking"] = map[bool]string{false: "off", true: "on"}[said.Buffers["model"]["CPU_REPACK"] > 0]
		policy["workers"] = strconv.Itoa(1 + t.Workers)
		policy["llama_cpp"] = t.Version
		ran := &browser.Ran{Device: new(e.device(onGPU, adapter)), Policy: policy, Layers: said.Layers(0),
			Ledger: onGPU}
		if !onGPU {
			ran.Sources = []sample.Source{sizes(p, said)}
		}
		return ran, nil
	}
}

// device returns what computes, and what was asked for if that matters: the adapter is chosen for all engines of a run,
// and only a GPU, or WebGPU, was asked of this one.
func (e *Engine) device(onGPU bool, adapter record.Device) record.Device {
	asked := adapter.Asked
	if onGPU {
		return adapter
	}
	switch {
	case e.config.backend() == WebGPU:
		asked = WebGPU
	case e.config.backend() == WASM || asked != string(record.GPU):
		asked = ""
	}
	return record.Device{Class: record.CPU, Name: machine.CPU(), Asked: asked,
		Detail: map[string]string{"backend": WASM, "threads": strconv.Itoa(e.threads())}}
}

// sizes is the source of the sizes that the log reported at the load.
func sizes(p *browser.Page, said logs.Load) *sample.Func {
	return &sample.Func{
		Values: func(ctx context.Context) (map[string]float64, error) {
			held, err := browser.Call[int](ctx, p, "llmparity.held()")
			return said.Values(held), err
		},
		Source: record.Source{Role: "wllama", Method: logs.Method, Waits: true,
			Sees: "buffers of weights, KV cache and computation in WebAssembly memory, as llama.cpp's log reports them (not " +
				"measured), to 0.01 MiB; kv_used_bytes is calculated: tokens in the cache × kv_reserved_bytes / cells",
			Blind: "which pages of a buffer were touched; code, stacks, tokeniser; what the heap keeps of freed memory"}}
}

// layout splits the ledger by the stage in which buffers were made.
type layout struct{ said atomic.Pointer[logs.Load] }

// Parts splits a reading of the ledger.
func (l *layout) Parts(groups []browser.LedgerGroup, held int64) []record.Value {
	names := map[string]string{"weights": "weights_bytes", "cache": "kv_reserved_bytes"}
	parts := map[string]int64{"weights_bytes": 0, "kv_reserved_bytes": 0, "workspaces_bytes": 0,
		"unattributed_bytes": 0}
	for _, g := range groups {
		name, ok := names[g.Stage]
		if !ok {
			name = "workspaces_bytes"
		}
		parts[name] += g.Bytes * g.Count
	}
	if used, ok := l.Used(held); ok {
		parts["kv_used_bytes"] = used
	}
	return sample.Values(parts)
}

// Used returns the bytes of that many tokens in the KV cache, by the log's number of cells.
func (l *layout) Used(held int64) (int64, bool) {
	said := l.said.Load()
	if said == nil || held < 0 {
		return 0, false
	}
	used, ok := said.Totals(int(held))["kv_used_bytes"]
	return int64(used), ok
}
