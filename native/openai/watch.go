package openai

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/wire"
)

// watchMetrics starts reading /metrics.
func (s *session) watchMetrics(ctx context.Context) {
	_, err := s.client.metrics(ctx)
	if err == nil {
		source := record.Source{Role: "server", Method: MethodMetrics, PID: s.pid, Every: metricsEvery, Waits: true,
			Sees: fmt.Sprintf("what %s reports at /metrics (not measured): requests, KV cache, preemptions, tokens since its start "+
				"(the sum over replicas; for ratios the highest)", s.server.title()),
			Blind: "everything else; changes between two of its updates"}
		s.attach(&sample.Func{Values: s.client.metrics, Source: source})
		return
	}
	r := wire.RefusalOf(err)
	switch {
	// it has no /metrics
	case ctx.Err() != nil, r != nil && r.Status == http.StatusNotFound && s.server.kind != llamaServer:
	case s.server.kind == llamaServer && r != nil:
		s.probe.Event(record.Event{At: time.Now(),
			Text: "the server has no /metrics; start llama-server with --metrics"})
	default:
		s.probe.Event(record.Event{At: time.Now(), Text: "/metrics cannot be read: " + s.client.Hide(err.Error())})
	}
}

// watchProcesses samples the process tree that listens at the server's address; in a container all of its processes.
func (s *session) watchProcesses(ctx context.Context) error {
	if s.config.In != nil {
		c, err := s.config.In.Container(ctx)
		if err != nil {
			return err
		}
		s.pid = c.PID
		all := func(p proc.Process) bool { return c.Has(p.PID) }
		s.tree, err = proc.NewTreeWith(c.PID, all, Role, s.probe.Attach, false)
		return err
	}
	pid, name, err := launch.Listener(ctx, s.client.at.host, s.client.at.local)
	if err != nil {
		return err
	}
	root := proc.Root(pid)
	s.tree, err = proc.NewTree(root, Role, s.probe.Attach, false)
	if err != nil {
		return err
	}
	s.pid = root
	s.probe.Event(record.Event{At: time.Now(),
		Text: fmt.Sprintf("process %d (%s) listens at %s; process %d and its descendants are sampled", pid, name,
			s.client.at.host, root)})
	return nil
}

// Role returns a process's role in a server that consists of several processes.
func Role(line []string) string {
	all := strings.ToLower(strings.Join(line, " "))
	for _, part := range []struct{ mark, role string }{
		{"enginecore", "engine"}, {"::worker", "worker"}, {"sglang::scheduler", "worker"},
		{"text-generation-server", "worker"}, {" runner ", "runner"},
	} {
		if strings.Contains(all, part.mark) {
			return part.role
		}
	}
	return "server"
}

// listens reports whether anything accepts connections at the server's address. Through a proxy that is unknown.
func (c *client) listens(ctx context.Context) bool {
	conn, err := c.dial(ctx, "tcp", c.at.host)
	if err != nil {
		return ctx.Err() != nil
	}
	_ = conn.Close() // only a probe
	return true
}

// MethodMetrics is the method of figures from a server's /metrics.
const MethodMetrics = "server_metrics"

const (
	metricsEvery = time.Second
	// metricsPatience limits an answer of /metrics, which some servers give only between two steps of the model.
	metricsPatience = 5 * time.Second
)

// vocabulary maps series of servers to our names. Of several series for one name, older ones come last.
var vocabulary = map[string][]string{
	"requests_running_count": {"llamacpp:requests_processing", "vllm:num_requests_running",
		"sglang:num_running_reqs", "tgi_batch_current_size"},
	"requests_waiting_count": {"llamacpp:requests_deferred", "vllm:num_requests_waiting",
		"sglang:num_queue_reqs", "tgi_queue_size"},
	"kv_cache_usage_ratio": {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage",
		"llamacpp:kv_cache_usage_ratio"},
	"kv_cache_tokens_count": {"sglang:num_used_tokens", "llamacpp:kv_cache_tokens"},
	"preemptions_count":     {"vllm:num_preemptions_total", "sglang:num_retracted_requests_total"},
	"prompt_tokens_count": {"llamacpp:prompt_tokens_total", "vllm:prompt_tokens_total",
		"sglang:prompt_tokens_total", "tgi_request_input_length_sum"},
	"generated_tokens_count": {"llamacpp:tokens_predicted_total", "vllm:generation_tokens_total",
		"sglang:generation_tokens_total", "tgi_request_generated_tokens_sum"},
	"cached_prompt_tokens_count": {"llamacpp:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total",
		"vllm:gpu_prefix_cache_hits_total", "sglang:cached_tokens_total"},
	"cache_hit_ratio": {"sglang:cache_hit_rate"},
}

// wanted reports whether there is a name for a series.
func wanted(series string) bool {
	for _, from := range vocabulary {
		if slices.Contains(from, series) {
			return true
		}
	}
	return false
}

// ranks are labels of processes that compute the same requests together; each counts all of them.
var ranks = []string{"tp_rank", "pp_rank", "moe_ep_rank", "moe_tp_rank", "moe_dp_rank", "pid"}

// together combines the values of a series: the highest of ranks that compute together; the sum of everything else
// that shares the work (engines, replicas, streaming or not, cache kinds), or for a ratio the highest. If one value
// covers all priorities, those of single priorities are ignored.
func together(page []wire.Metric, series string, ratio bool) (float64, bool) {
	page = slices.DeleteFunc(slices.Clone(page), func(m wire.Metric) bool {
		return m.Name != series || math.IsNaN(m.Value) || math.IsInf(m.Value, 0)
	})
	if slices.ContainsFunc(page, func(m wire.Metric) bool { return m.Labels["priority"] == "" }) {
		page = slices.DeleteFunc(page, func(m wire.Metric) bool { return m.Labels["priority"] != "" })
	}
	shares := map[string]float64{}
	for _, m := range page {
		maps.DeleteFunc(m.Labels, func(name, _ string) bool { return slices.Contains(ranks, name) })
		share := fmt.Sprintf("%q", m.Labels) // sorted
		if have, ok := shares[share]; !ok || m.Value > have {
			shares[share] = m.Value
		}
	}
	total := 0.0
	for _, n := range shares {
		if ratio {
			total = max(total, n)
		} else {
			total += n
		}
	}
	return total, len(shares) > 0
}

// metrics reads the server's /metrics.
func (c *client) metrics(ctx context.Context) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsPatience)
	defer cancel()
	resp, err := c.Send(ctx, http.MethodGet, c.at.root+"/metrics", nil)
	if err != nil {
		if ctx.Err() == nil && !c.listens(ctx) {
			return nil, fmt.Errorf("the server at %s: %w", c.at.host, sample.ErrGone)
		}
		return nil, err
	}
	defer resp.Body.Close()
	page, err := wire.Metrics(resp.Body, wanted)
	all := map[string]float64{}
	for name, from := range vocabulary {
		for _, series := range from {
			if n, ok := together(page, series, strings.HasSuffix(name, "_ratio")); ok {
				all[name] = n
				break
			}
		}
	}
	if err == nil && len(all) == 0 {
		err = errors.New("/metrics has no known series")
	}
	return all, err
}
