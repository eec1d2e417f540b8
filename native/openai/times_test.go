package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/native/openai"
)

// vllmish is a server that claims to be vLLM.
func vllmish(t *testing.T, version string, answer func(w http.ResponseWriter, body map[string]any)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			io.WriteString(w, `{"object":"list","data":[{"id":"mouse","owned_by":"vllm"}]}`)
		case "/version":
			io.WriteString(w, `{"version":"`+version+`"}`)
		case "/v1/completions":
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			answer(w, body)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func running(text string, soFar int) string {
	return fmt.Sprintf(`data: {"choices":[{"index":0,"text":%q,"finish_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":%d}}`, text, soFar)
}

func indexed(index int, text string) string {
	return strings.Replace(piece(text), `"index":0`, fmt.Sprintf(`"index":%d`, index), 1)
}

// If the server counts with each chunk, a token has the time of its chunk. If the counts are implausible, each piece
// is a token.
func TestTokensOfChunks(t *testing.T) {
	for name, c := range map[string]struct {
		lines  []string
		tokens int
		first  int // at the time of the first
		warned string
	}{
		"eight at a time": {[]string{running("a", 8), running("b", 16), finish, counts(3, 16), done},
			16, 8, ""},
		"some without text": {[]string{running("", 1), running("a", 3), running("", 4), running("b", 5),
			finish, counts(3, 5), done}, 5, 3, ""},
		"one after the text": {[]string{running("a", 1), running("b", 2),
			strings.Replace(finish, `}]}`, `}],"usage":{"completion_tokens":3}}`, 1), counts(3, 3), done}, 3, 1, ""},
		"counts that stand still": {[]string{running("a", 1), running("b", 1), finish, counts(3, 2), done},
			2, 1, ""},
		"counts above the request": {[]string{running("a", 1<<30), running("b", 1<<30), finish, counts(3, 2),
			done}, 2, 1, ""},
		"index that counts tokens": {[]string{indexed(0, "a"), indexed(1, "b"), indexed(2, "c"), finish, counts(3, 3),
			done}, 3, 1, ""},
		"two answers": {[]string{strings.Replace(running("a", 1), `}],`, `},{"index":1,"text":"b"}],`, 1), finish,
			counts(3, 1), done}, 1, 1, ""},
		"count only with the last": {[]string{piece("a"), piece("b"), running("c", 16), finish, counts(3, 16),
			done}, 3, 1, "several-per-piece"},
	} {
		t.Run(name, func(t *testing.T) {
			url := vllmish(t, "0.10.1", func(w http.ResponseWriter, body map[string]any) {
				if options, _ := body["stream_options"].(map[string]any); options["continuous_usage_stats"] != true {
					http.Error(w, "not requested", http.StatusBadRequest)
					return
				}
				for _, l := range c.lines {
					io.WriteString(w, l+"\n\n")
					w.(http.Flusher).Flush()
					time.Sleep(10 * time.Millisecond)
				}
			})
			s, p := loaded(t, openai.Config{URL: url}, served)
			g, err := generated(t.Context(), s, 16)
			check.Err(t, err)
			first := 0
			for _, k := range g.Tokens {
				if k.At.Equal(g.Tokens[0].At) {
					first++
				}
			}
			if len(g.Tokens) != c.tokens || first < c.first || codes(p) != c.warned {
				t.Errorf("%d tokens, %d with the first, warnings %q; want %d, %d, %q", len(g.Tokens), first,
					codes(p), c.tokens, c.first, c.warned)
			}
		})
	}
}

// A server elsewhere has the device that the plan states, else an unknown one.
func TestStatedDevice(t *testing.T) {
	url := broken(t, says(piece("a"), finish, counts(3, 1), done)).URL
	for stated, want := range map[string]record.Device{"gpu": {Class: record.GPU, Origin: record.DeviceStated},
		"cpu": {Class: record.CPU, Origin: record.DeviceStated}, "": {Class: "unknown"}} {
		_, p := loaded(t, openai.Config{URL: url, Device: stated}, served)
		if d := p.Device(); d.Class != want.Class || d.Origin != want.Origin || d.Name == "" {
			t.Errorf("%q: %+v", stated, d)
		}
	}
}

// Pieces that arrive all at once give no decode speed.
func TestBurst(t *testing.T) {
	s, p := loaded(t, openai.Config{URL: broken(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, strings.Join([]string{piece("a"), piece("b"), piece("c"), piece("d"), finish, counts(3, 4),
			done, ""}, "\n\n"))
	}).URL}, served)
	g, err := generated(t.Context(), s, 4)
	check.Err(t, err)
	if len(g.Tokens) != 4 || !g.Tokens[0].At.Equal(g.Tokens[3].At) {
		t.Errorf("%v: want one read", g.Tokens)
	}
	if slices.ContainsFunc(g.Usage.Spans, func(s record.Span) bool { return s.Name == record.Decode }) {
		t.Error("there is a decode span")
	}
	if w := p.Warnings(); !slices.ContainsFunc(w, func(w record.Warning) bool { return w.Code == "burst" }) {
		t.Errorf("%v", w)
	}
}

// The end mark ends a generation even if the server keeps the connection open.
func TestDoneEndsGeneration(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	s, _ := loaded(t, openai.Config{URL: broken(t, func(w http.ResponseWriter, r *http.Request) {
		says(piece("a"), finish, counts(3, 1), done)(w, r)
		select {
		case <-release:
		case <-r.Context().Done(): // the client has gone
		}
	}).URL}, served)
	if g, err := generated(t.Context(), s, 1); err != nil || g.Usage.Text != "a" {
		t.Errorf("%v: %+v", err, g)
	}
}

// A refused optional field is omitted from then on, with one warning. The send time is that of the answered request.
func TestRefusedField(t *testing.T) {
	var refused, salts []string
	var answered time.Time
	url := vllmish(t, "0.9.1", func(w http.ResponseWriter, body map[string]any) {
		for _, field := range []string{"cache_salt", "min_p"} {
			if v, ok := body[field]; ok {
				refused = append(refused, field)
				salts = append(salts, fmt.Sprint(v))
				http.Error(w, `{"error":{"message":"Parameter '`+field+`' is not supported with this instance"}}`,
					http.StatusBadRequest)
				return
			}
		}
		answered = time.Now()
		says(running("a", 1), finish, done)(w, nil)
	})
	s, p := loaded(t, openai.Config{URL: url}, served)
	for range 2 {
		g, err := generated(t.Context(), s, 1)
		if err != nil || g.Usage.CachedTokens != record.CacheUnknown {
			t.Fatalf("%v: %d cached tokens", err, g.Usage.CachedTokens)
		}
		if len(refused) != 2 || refused[0] != "cache_salt" || len(salts[0]) < 16 {
			t.Errorf("refused %v (%v), want each once", refused, salts)
		}
		if g.Usage.Sent.After(answered) || g.Usage.Sent.Before(g.Called) {
			t.Errorf("sent at %v, answered at %v", g.Usage.Sent, answered)
		}
	}
	if got := codes(p); got != "field-refused field-refused cache-unknown cache-unknown" {
		t.Errorf("warnings %q", got)
	}
}

// chunked is a chunk of vLLM with the ids of its tokens.
func chunked(text string, soFar int, ids ...int) string {
	list, _ := json.Marshal(ids)
	prompt := "null"
	if soFar == len(ids) {
		prompt = "[7,8,9]"
	}
	return fmt.Sprintf(`data: {"choices":[{"index":0,"text":%q,"finish_reason":null,"prompt_token_ids":%s,"token_ids":%s}],"usage":{"prompt_tokens":3,"completion_tokens":%d}}`,
		text, prompt, list, soFar)
}

// vLLM returns the ids of the prompt and of each token, also of one that has no text yet. Chunks that are read together
// still have a decode speed if most of them came later than the first read.
func TestTokenIDs(t *testing.T) {
	for name, c := range map[string]struct {
		reads  []string
		decode bool
	}{
		"one by one": {[]string{chunked("a", 1, 4), chunked("", 2, 5), chunked("b", 3, 6), chunked("c", 4, 4)}, true},
		"first alone, then together": {[]string{chunked("a", 1, 4), chunked("", 2, 5) + "\n\n" + chunked("b", 3, 6) +
			"\n\n" + chunked("c", 4, 4)}, true},
		"two in a chunk": {[]string{chunked("a", 2, 4, 5), chunked("bc", 4, 6, 4)}, true},
		"all at once": {[]string{chunked("a", 1, 4) + "\n\n" + chunked("", 2, 5) + "\n\n" + chunked("b", 3, 6) +
			"\n\n" +
			chunked("c", 4, 4)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			url := vllmish(t, "0.32.0", func(w http.ResponseWriter, body map[string]any) {
				options, _ := body["stream_options"].(map[string]any)
				if body["return_token_ids"] != true || options["continuous_usage_stats"] != nil {
					http.Error(w, "not what is needed", http.StatusBadRequest)
					return
				}
				for _, text := range c.reads {
					io.WriteString(w, text+"\n\n")
					w.(http.Flusher).Flush()
					time.Sleep(20 * time.Millisecond)
				}
				io.WriteString(w, finish+"\n\n"+counts(3, 4)+"\n\n"+done+"\n\n")
			})
			s, p := loaded(t, openai.Config{URL: url}, served)
			g, err := generated(t.Context(), s, 4)
			check.Err(t, err)
			decode := slices.ContainsFunc(g.Usage.Spans, func(s record.Span) bool { return s.Name == record.Decode })
			if !slices.Equal(g.IDs(), []int{4, 5, 6, 4}) || !slices.Equal(g.Usage.PromptIDs, []int{7, 8, 9}) ||
				g.Usage.Text != "abc" || g.Usage.Generated != 4 || decode != c.decode || codes(p) != "" {
				t.Errorf("%v, decode %v, %+v, warnings %q", g.IDs(), decode, g.Usage, codes(p))
			}
		})
	}
}

// A text is scored as a prompt: vLLM returns the likeliest tokens of each position and the prompt's own, by id.
func TestScores(t *testing.T) {
	answer := `[null,{"78":{"logprob":-46.2,"rank":9},"492":{"logprob":-0.1,"rank":1},"3":{"logprob":-3,"rank":2}},{"200":{"logprob":-0.5,"rank":1},"4":{"logprob":-2,"rank":2}}]`
	url := vllmish(t, "0.32.0", func(w http.ResponseWriter, body map[string]any) {
		if body["stream"] == true {
			says(chunked("a", 1, 4), finish, done)(w, nil)
			return
		}
		if fmt.Sprint(body["prompt"], body["prompt_logprobs"], body["max_tokens"]) != "[47 78 200] 2 1" {
			http.Error(w, "unexpected request", http.StatusBadRequest)
			return
		}
		io.WriteString(w, `{"choices":[{"prompt_logprobs":`+answer+`}]}`)
	})
	s, _ := loaded(t, openai.Config{URL: url}, served)
	var got []record.Score
	text := engine.Forced{Prompt: []int{47}, IDs: []int{78, 200}, Top: 2}
	check.Err(t, s.(engine.Scorer).Score(t.Context(), text, func(sc record.Score) { got = append(got, sc) }))
	want := []record.Score{
		{Position: 0, Forced: 78, LogProb: -46.2, Top: []record.Candidate{{ID: 492, LogProb: -0.1}, {ID: 3,
			LogProb: -3}}},
		{Position: 1, Forced: 200, LogProb: -0.5, Top: []record.Candidate{{ID: 200, LogProb: -0.5}, {ID: 4,
			LogProb: -2}}},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, wrong := range []string{`[null]`, `[null,{"a":{"logprob":0,"rank":1}},{}]`,
		`[null,{"1":{"logprob":0,"rank":1}},{}]`} {
		answer = wrong
		err := s.(engine.Scorer).Score(t.Context(), text, func(record.Score) {})
		enginetest.OneLine(t, err, fault.Run, record.BadOutput)
	}
}

// Each request to vLLM has its own salt, so its cache finds nothing.
func TestCacheSalt(t *testing.T) {
	salts := map[any]bool{}
	url := vllmish(t, "0.10.1", func(w http.ResponseWriter, body map[string]any) {
		salts[body["cache_salt"]] = true
		says(running("a", 1), finish, done)(w, nil)
	})
	s, p := loaded(t, openai.Config{URL: url}, served)
	for range 3 {
		if g, err := generated(t.Context(), s, 1); err != nil || g.Usage.CachedTokens != 0 {
			t.Fatalf("%v: %d", err, g.Usage.CachedTokens)
		}
	}
	if len(salts) != 4 || salts[nil] || codes(p) != "" { // the load is a request, too
		t.Errorf("%d salts in 4 requests, warnings %q", len(salts), codes(p))
	}
}
