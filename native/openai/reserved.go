package openai

import (
	"context"
	"maps"
	"net/http"
	"strconv"

	"llmparity/internal/dtype"
	"llmparity/internal/host/sample"
	"llmparity/internal/models"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/record"
	"llmparity/native/logs"
	"llmparity/native/wire"
)

// cacheSeries has the size of vLLM's KV cache in its labels.
const cacheSeries = "vllm:cache_config_info"

// blocks returns the size of the KV cache in tokens and the dtype of its values, over all replicas; 0: unknown.
func (c *client) blocks(ctx context.Context) (tokens int, kv string) {
	ctx, cancel := context.WithTimeout(ctx, metricsPatience)
	defer cancel()
	resp, err := c.Send(ctx, http.MethodGet, c.at.root+"/metrics", nil)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	page, err := wire.Metrics(resp.Body, func(name string) bool { return name == cacheSeries })
	if err != nil {
		return 0, ""
	}
	for _, m := range page {
		n, err := strconv.Atoi(m.Labels["num_gpu_blocks"]) // its name on a CPU, too
		size, err2 := strconv.Atoi(m.Labels["block_size"])
		if err == nil && err2 == nil && n > 0 && size > 0 && n < 1<<40/size {
			tokens, kv = tokens+n*size, m.Labels["cache_dtype"]
		}
	}
	return tokens, kv
}

// reserves offers the sizes that the server reports at its start. That of the KV cache is its blocks, times the bytes
// of a token, which follow from the model's shape, if it is here.
func (s *session) reserves(ctx context.Context, m models.Model) {
	values := map[string]float64{}
	if s.started != nil {
		maps.Copy(values, s.started.Sizes)
	}
	if s.server.kind == vllm {
		tokens, kv := s.client.blocks(ctx)
		if each := BytesPerToken(s.of(m), s.kvType(kv, m)); tokens > 0 && each > 0 {
			values["kv_reserved_bytes"], values["kv_cells_count"] = float64(tokens)*each, float64(tokens)
		}
	}
	if len(values) == 0 {
		return
	}
	if graphs, ok := values["graphs_bytes"]; ok {
		values["workspaces_bytes"] = graphs
	}
	detach := s.attach(&sample.Func{
		Values: func(context.Context) (map[string]float64, error) { return values, nil },
		Source: record.Source{Role: "server", Method: logs.Method, PID: s.pid,
			Sees: "sizes as the server reports them at its start (not measured): weights and captured graphs in its log; " +
				"kv_reserved_bytes is the blocks of its KV cache × the bytes of a token, calculated from the model's shape",
			Blind: "how much of the KV cache is in use, and whether it was touched"}})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = detach
}

// of is the file or folder with the model's sizes.
func (s *session) of(m models.Model) string {
	if m.Path != "" {
		return m.Path
	}
	return s.folder()
}

// kvType returns the dtype of the KV cache, given the server's name for it: auto is that of the activations.
func (s *session) kvType(name string, m models.Model) string {
	if s.started != nil && s.started.Info.Policy["kv_dtype"] != "" {
		return s.started.Info.Policy["kv_dtype"]
	}
	if d, ok := dtype.Named(name); ok {
		return d.Name
	}
	return m.DType
}

// BytesPerToken returns the size of a token in a KV cache of all layers; 0: unknown.
func BytesPerToken(path, kv string) float64 {
	d, ok := dtype.Named(kv)
	if path == "" || !ok {
		return 0
	}
	sizes, err := models.Sizes(path)
	if err != nil {
		return 0
	}
	return float64(hfconfig.KVValues(sizes.Caches)) * d.Width()
}
