package openai_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/openai"
)

// neutral lists the fields that disable the sampling defaults of vLLM and SGLang.
var neutral = []string{"frequency_penalty", "min_p", "presence_penalty", "repetition_penalty", "top_k", "top_p"}

// Answers of servers that cannot run here, from their documentation and sources: vLLM's docs.vllm.ai (usage/metrics,
// OpenAI-compatible server) and vllm/v1/metrics/loggers.py, SGLang's docs.sglang.io (native API, production metrics)
// and its metrics_collector.py, TGI's huggingface.co/docs/text-generation-inference (API, metrics), LM Studio's
// lmstudio.ai/docs (REST API v0). Other tests run the real llama-server and Ollama.
var kinds = []struct {
	title   string
	paths   map[string]string
	eos     bool
	beyond  []string // fields that only it gets
	context string   // words of the refusal of 9000 tokens
	metrics map[string]float64
}{
	{
		title: "vLLM 0.11.0", eos: true, beyond: append([]string{"cache_salt", "return_token_ids"}, neutral...),
		context: "in a context of 4096",
		paths: map[string]string{
			"/v1/models": `{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"vllm","root":"m","max_model_len":4096,"permission":[]}]}`,
			"/version":   `{"version":"0.11.0"}`,
			"/metrics": `vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:num_requests_running{engine="1",model_name="m"} 1.0
vllm:num_requests_waiting{engine="0",model_name="m"} 72.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 72.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.5
vllm:num_preemptions_total{engine="0",model_name="m"} 7.0
vllm:num_preemptions_created{engine="0",model_name="m"} 1.7e+09
vllm:prompt_tokens_total{engine="0",model_name="m"} 123456.0
vllm:generation_tokens_total{engine="0",model_name="m"} 98765.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 10.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 5.0
vllm:iteration_tokens_total_bucket{le="+Inf",model_name="m"} 3.0
`,
		},
		metrics: map[string]float64{"requests_running_count": 3, "requests_waiting_count": 72,
			"kv_cache_usage_ratio": 0.5, "preemptions_count": 7,
			"prompt_tokens_count": 123456, "generated_tokens_count": 98765, "cached_prompt_tokens_count": 5},
	},
	{
		title: "vLLM (unknown version)", eos: true, beyond: neutral, // an old one
		paths: map[string]string{
			"/v1/models": `{"object":"list","data":[{"id":"m","owned_by":"vllm"}]}`,
			"/metrics":   "vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.4217\nvllm:gpu_prefix_cache_hits_total{engine=\"0\",model_name=\"m\"} 11.0\nvllm:num_requests_running{model_name=\"m\"} 3.0\n",
		},
		metrics: map[string]float64{"kv_cache_usage_ratio": 0.4217, "requests_running_count": 3,
			"cached_prompt_tokens_count": 11},
	},
	{
		title: "SGLang 0.5.3", eos: true, beyond: neutral, context: "in a context of 8192",
		paths: map[string]string{
			"/v1/models":       `{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"sglang","root":"m","max_model_len":8192}]}`,
			"/get_server_info": `{"model_path":"m","api_key":"server-secret","version":"0.5.3","internal_states":[{}]}`,
			"/metrics": `sglang:token_usage{engine_type="unified",model_name="m",tp_rank="0"} 0.28
sglang:token_usage{engine_type="unified",model_name="m",tp_rank="1"} 0.28
sglang:num_running_reqs{engine_type="unified",model_name="m",tp_rank="0"} 4.0
sglang:num_running_reqs{engine_type="unified",model_name="m",tp_rank="1"} 4.0
sglang:num_queue_reqs{dp_rank="0",priority="",tp_rank="0"} 2.0
sglang:num_queue_reqs{dp_rank="0",priority="-1",tp_rank="0"} 0.0
sglang:num_queue_reqs{dp_rank="0",priority="0",tp_rank="0"} 2.0
sglang:num_queue_reqs{dp_rank="1",priority="",tp_rank="0"} 1.0
sglang:num_queue_reqs{dp_rank="1",priority="0",tp_rank="0"} 1.0
sglang:num_used_tokens{model_name="m"} 123859.0
sglang:cache_hit_rate{model_name="m"} 0.0075
sglang:prompt_tokens_total{is_streaming="false",model_name="m"} 429
sglang:prompt_tokens_total{is_streaming="true",model_name="m"} 8.128902e+06
sglang:generation_tokens_total{is_streaming="false",model_name="m"} 177
sglang:generation_tokens_total{is_streaming="true",model_name="m"} 7.557572e+06
sglang:cached_tokens_total{cache_source="device",model_name="m"} 4916
sglang:cached_tokens_total{cache_source="host",model_name="m"} 740
# A gauge: how many are retracted now, and not how many were.
sglang:num_retracted_reqs{model_name="m",tp_rank="0"} 2.0
sglang:num_retracted_requests_total{model_name="m",tp_rank="0"} 9.0
sglang:num_retracted_requests_total{model_name="m",tp_rank="1"} 9.0
sglang:time_to_first_token_seconds_bucket{le="0.001",model_name="m"} 0.0
`,
		},
		metrics: map[string]float64{"requests_running_count": 4, "requests_waiting_count": 3,
			"kv_cache_usage_ratio": 0.28, "kv_cache_tokens_count": 123859,
			"cache_hit_ratio": 0.0075, "prompt_tokens_count": 8128902 + 429, "generated_tokens_count": 7557572 + 177,
			"cached_prompt_tokens_count": 4916 + 740, "preemptions_count": 9},
	},
	{
		title: "TGI 3.3.4", context: "in a context of 4096",
		paths: map[string]string{
			"/v1/models": `{"object":"list","data":[{"id":"m","object":"model","created":0,"owned_by":"m"}]}`,
			"/info":      `{"model_id":"m","model_sha":"abc","max_concurrent_requests":128,"max_total_tokens":4096,"router":"text-generation-router","version":"3.3.4","sha":null,"docker_label":null}`,
			"/metrics": `tgi_request_count 42
tgi_queue_size 12
tgi_batch_current_size 4
tgi_request_generated_tokens_bucket{le="1"} 0
tgi_request_generated_tokens_sum 8123
tgi_request_generated_tokens_count 44

tgi_request_input_length_bucket{le="+Inf"} 109
tgi_request_input_length_sum 662
tgi_request_input_length_count 109
`,
		},
		metrics: map[string]float64{"requests_running_count": 4, "requests_waiting_count": 12,
			"prompt_tokens_count": 662, "generated_tokens_count": 8123},
	},
	{
		title:  "LM Studio (unknown version)",
		beyond: []string{"frequency_penalty", "presence_penalty", "repeat_penalty", "top_p"},
		paths: map[string]string{
			"/v1/models":     `{"data":[{"id":"m","object":"model","owned_by":"organization_owner"}],"object":"list"}`,
			"/api/v0/models": `{"object":"list","data":[{"id":"m","object":"model","type":"llm","compatibility_type":"gguf","state":"loaded"}]}`,
		},
	},
	{title: "unknown server", beyond: []string{"top_p"},
		paths: map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`}},
}

// strict is a server that refuses unknown fields and notes those of the last request.
func strict(t *testing.T, paths map[string]string, known []string) (url string, asked *[]string) {
	asked = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			if text, ok := paths[r.URL.Path]; ok {
				io.WriteString(w, text)
			} else {
				http.NotFound(w, r)
			}
			return
		}
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		*asked = slices.Sorted(maps.Keys(body))
		options, _ := body["stream_options"].(map[string]any)
		if _, per := options["continuous_usage_stats"]; per && !slices.Contains(known, "ignore_eos") {
			http.Error(w, `{"error":{"message":"Unrecognized request argument supplied: continuous_usage_stats"}}`,
				http.StatusBadRequest)
			return
		}
		for _, field := range *asked {
			if !slices.Contains(known, field) {
				http.Error(w, `{"error":{"message":"Unrecognized request argument supplied: `+field+`"}}`,
					http.StatusBadRequest)
				return
			}
		}
		says(piece("a"), finish, counts(1, 1), done)(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestKindsOfServers(t *testing.T) {
	common := []string{"max_tokens", "model", "prompt", "seed", "stream", "stream_options", "temperature"}
	for _, k := range kinds {
		t.Run(k.title, func(t *testing.T) {
			known := slices.Concat(common, k.beyond)
			if k.eos {
				known = append(known, "ignore_eos")
			}
			slices.Sort(known)
			url, asked := strict(t, k.paths, known)
			e := openai.New(openai.Config{URL: url + "/v1/"})
			check.Err(t, e.Check(t.Context(),
				models.Model{Model: record.Model{Name: "m", Format: record.Served}}))
			if c := e.Caps(); c.IgnoreEOS != k.eos || c.PromptCache == slices.Contains(k.beyond, "cache_salt") ||
				c.TokenIDs != slices.Contains(k.beyond, "return_token_ids") {
				t.Errorf("%+v", c)
			}
			s, p := loaded(t, openai.Config{URL: url},
				models.Model{Model: record.Model{Name: "m", Format: record.Served}})
			info := p.Engine()
			if got := info.Version; got != k.title {
				t.Errorf("%q, want %q", info.Version, k.title)
			}
			if text, err := json.Marshal(info); err != nil || strings.Contains(string(text), "server-secret") {
				t.Error("the server's key is in the record")
			}
			if _, err := s.Generate(t.Context(), engine.Request{Prompt: "p", MaxTokens: 1, IgnoreEOS: k.eos},
				func(record.Token) {}); err != nil {
				t.Error(err)
			}
			if !slices.Equal(*asked, known) {
				t.Errorf("fields %v, want %v", *asked, known)
			}
			if strings.Contains(codes(p), "field-refused") {
				t.Error("unknown fields are sent")
			}
			if k.context != "" {
				_, err := generated(t.Context(), s, 9000)
				if err == nil || !strings.Contains(err.Error(), k.context) {
					t.Errorf("more than the context: %v, want %q", err, k.context)
				}
			}
			got := p.Values(t, openai.MethodMetrics)
			if len(got) != len(k.metrics) || !maps.Equal(got, k.metrics) && k.metrics != nil {
				t.Errorf("%v, want %v", got, k.metrics)
			}
		})
	}
}
