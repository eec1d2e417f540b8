// Command engine is an example of an external engine. It speaks the protocol of docs/howto/add-an-engine.md on
// standard input and output, and computes with the reference implementation from llmparity's tests.
//
// It runs GGUF files with F32 weights, greedily, on one core: `llmparity run --engine exec:./engine`. With a fault it
// computes wrongly, to show what llmparity says of such an engine: `--engine "exec:./engine --fault skip-last-key"`.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny/damage"
	"llmparity/internal/models/tiny/reference"
	"llmparity/internal/models/tokenizer"
)

// request is any request of the protocol.
type request struct {
	ID    int
	Op    string
	Of    int // cancel
	Model struct {
		Path    string
		Context int
	}
	Prompt      string
	MaxTokens   int `json:"max_tokens"`
	Temperature float64
	IgnoreEOS   bool `json:"ignore_eos"`
	// score
	PromptIDs []int `json:"prompt_ids"`
	IDs       []int
	Top       int
}

// fields of an output line.
type fields map[string]any

func main() {
	wrong := flag.String("fault", "", "compute wrongly: "+strings.Join(damage.Names(), ", "))
	flag.Parse()
	if err := damage.Check(*wrong); err != nil {
		fmt.Fprintln(os.Stderr, "engine: --fault:", err)
		os.Exit(2)
	}
	requests := make(chan request, 16)
	go read(requests)
	e := engine{requests: requests, out: json.NewEncoder(os.Stdout), fault: *wrong}
	for r := range requests {
		e.answer(r)
	}
}

// read takes requests from standard input, also during an answer. The program exits at its end.
func read(to chan<- request) {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			fmt.Fprintln(os.Stderr, "engine: invalid request:", err)
			os.Exit(1)
		}
		to <- r
	}
}

type engine struct {
	requests  <-chan request
	out       *json.Encoder // writes each line immediately
	model     *reference.Model
	tokenizer *tokenizer.Tokenizer
	context   int
	fault     string // one of damage.Names
}

// say writes a line of the answer to r.
func (e *engine) say(r request, event string, f fields) {
	f["id"], f["event"] = r.ID, event
	if err := e.out.Encode(f); err != nil {
		os.Exit(1) // nobody reads it
	}
}

// refusal is an error with a class of the protocol.
type refusal struct{ class, text string }

func (r refusal) Error() string { return r.text }

func (e *engine) answer(r request) {
	f, err := fields{}, error(nil)
	switch r.Op {
	case "hello":
		f = fields{"protocol": 1, "name": "reference", "version": "1", "device": fields{"class": "cpu"},
			"caps":   fields{"ids": true, "exact": true, "ignore_eos": true, "scores": true},
			"policy": fields{"weights_dtype": "f32", "kv_dtype": "f32", "threads": "1", "prompt_cache": "off"}}
	case "load":
		err = e.load(r)
		f["context"] = e.context
	case "generate":
		f, err = e.generate(r)
	case "score":
		err = e.score(r)
	case "unload":
		e.model, e.tokenizer = nil, nil
		debug.FreeOSMemory() // immediately
	case "cancel": // the request has already ended
		return
	default:
		err = fmt.Errorf("unsupported operation %q", r.Op)
	}
	var known refusal
	switch {
	case errors.As(err, &known):
		e.say(r, "error", fields{"class": known.class, "message": known.text})
	case err != nil:
		e.say(r, "error", fields{"message": err.Error()})
	default:
		e.say(r, "done", f)
	}
}

func (e *engine) load(r request) error {
	e.say(r, "stage", fields{"stage": "tokenizer"})
	f, err := gguf.Open(r.Model.Path)
	if err != nil {
		return refusal{"bad-model", err.Error()}
	}
	defer f.Close()
	v, err := f.Vocabulary()
	if err != nil {
		return refusal{"bad-model", err.Error()}
	}
	shape, err := f.Architecture()
	if err != nil {
		return refusal{"bad-model", err.Error()}
	}
	e.say(r, "stage", fields{"stage": "weights"})
	model, err := reference.Load(f)
	if err != nil {
		return refusal{"bad-model", err.Error()}
	}
	e.model, e.tokenizer, e.context = model, tokenizer.New(v), shape.ContextLength
	if r.Model.Context > 0 {
		e.context = min(e.context, r.Model.Context)
	}
	return nil
}

// cancelled reports whether r was cancelled. No other requests come during one.
func (e *engine) cancelled(r request) bool {
	select {
	case c := <-e.requests:
		return c.Op == "cancel" && c.Of == r.ID
	default:
		return false
	}
}

func (e *engine) generate(r request) (fields, error) {
	if e.model == nil {
		return nil, errors.New("no model is loaded")
	}
	if r.Temperature != 0 {
		return nil, errors.New("only temperature 0 is supported")
	}
	prompt := e.tokenizer.Prompt(r.Prompt)
	if len(prompt) == 0 {
		return nil, errors.New("the prompt has no tokens")
	}
	if len(prompt)+r.MaxTokens > e.context {
		return nil, refusal{"prompt-too-long",
			fmt.Sprintf("the prompt of %d tokens and %d to generate do not fit in a context of %d",
				len(prompt), r.MaxTokens, e.context)}
	}
	begin, sequence := time.Now(), damage.Start(e.model, e.fault, len(prompt))
	for _, id := range prompt[:len(prompt)-1] {
		sequence.Step(id, false)
		if e.cancelled(r) {
			return nil, errors.New("cancelled")
		}
	}
	next, finish, n := prompt[len(prompt)-1], "length", 0
	words := words{tokenizer: e.tokenizer}
	for n < r.MaxTokens && !e.cancelled(r) {
		next = largest(sequence.Step(next, true))
		n++
		stops := next == e.tokenizer.EOS && !r.IgnoreEOS
		e.say(r, "token", fields{"token": next, "text": words.add(next, stops || n == r.MaxTokens)})
		if stops {
			finish = "stop"
			break
		}
	}
	return fields{"finish": finish, "prompt_ids": prompt, "generated": n,
		"reported": fields{"total_ms": float64(time.Since(begin).Microseconds()) / 1000}}, nil
}

func largest(logits []float32) int { return slices.Index(logits, slices.Max(logits)) }
