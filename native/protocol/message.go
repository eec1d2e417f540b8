package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"llmparity/internal/record"
)

// Version is the protocol's. It changes when an engine written for it would no longer work.
const Version = 1

// What may be asked.
const (
	opHello    = "hello"
	opLoad     = "load"
	opGenerate = "generate"
	opScore    = "score" // only of an engine that says it can
	opUnload   = "unload"
	opCancel   = "cancel" // has no answer of its own
)

// The requests, each a line.
type (
	helloRequest struct {
		ID       int    `json:"id"`
		Op       string `json:"op"`
		Protocol int    `json:"protocol"`
		Clock    string `json:"clock,omitempty"` // that t_ns may be of
	}
	loadRequest struct {
		ID    int    `json:"id"`
		Op    string `json:"op"`
		Model model  `json:"model"`
	}
	model struct {
		Name    string `json:"name"`
		Path    string `json:"path,omitempty"`
		Format  string `json:"format"`
		SHA256  string `json:"sha256,omitempty"`
		Context int    `json:"context,omitempty"`
	}
	generateRequest struct {
		ID          int     `json:"id"`
		Op          string  `json:"op"`
		Prompt      string  `json:"prompt"`
		MaxTokens   int     `json:"max_tokens"`
		Temperature float64 `json:"temperature"`
		IgnoreEOS   bool    `json:"ignore_eos"`
	}
	scoreRequest struct {
		ID        int    `json:"id"`
		Op        string `json:"op"`
		PromptIDs []int  `json:"prompt_ids"`
		IDs       []int  `json:"ids"` // forced, one after the other
		Top       int    `json:"top"`
	}
	plainRequest struct {
		ID int    `json:"id"`
		Op string `json:"op"`
		Of int    `json:"of,omitempty"` // which request is cancelled
	}
)

// What an answer may be. A request is answered by any number of the first three, and one of the last two.
const (
	evAlive = "alive"
	evStage = "stage"
	evToken = "token"
	evDone  = "done"
	evError = "error"
)

// message is a line of an engine's.
type message struct {
	ID    int    `json:"id"`
	Event string `json:"event"`

	// done, of hello
	Protocol int      `json:"protocol"`
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Caps     caps     `json:"caps"`
	Formats  []string `json:"formats"`
	Device   *device  `json:"device"`
	Clock    string   `json:"clock"`

	// done, of hello and of load
	Policy map[string]string `json:"policy"`
	// done, of load
	Context int `json:"context"`

	Stage string `json:"stage"`

	// token
	Token *int   `json:"token"`
	Text  string `json:"text"`
	NS    *int64 `json:"t_ns"`

	// token, in answer to score
	LogProb *float64    `json:"logprob"`
	Top     []candidate `json:"top"`

	// done, of generate
	Finish       string             `json:"finish"`
	PromptIDs    []int              `json:"prompt_ids"`
	PromptTokens int                `json:"prompt_tokens"`
	Generated    int                `json:"generated"`
	CachedTokens *int               `json:"cached_tokens"`
	Reported     map[string]float64 `json:"reported"`

	// error
	Class   string `json:"class"`
	Message string `json:"message"`
}

// candidate is a token that might have come.
type candidate struct {
	Token   *int     `json:"token"`
	LogProb *float64 `json:"logprob"`
}

// last tells whether the message ends its request.
func (m message) last() bool { return m.Event == evDone || m.Event == evError }

// cached is how many tokens of the prompt came from a cache, as far as it is told.
func (m message) cached() int {
	if m.CachedTokens == nil {
		return 0
	}
	return *m.CachedTokens
}

type caps struct {
	IDs         bool `json:"ids"`
	Exact       bool `json:"exact"`
	IgnoreEOS   bool `json:"ignore_eos"`
	PromptCache bool `json:"prompt_cache"`
	Scores      bool `json:"scores"`
}

// String names what can be done, for people.
func (c caps) String() string {
	var can []string
	for _, cap := range []struct {
		is   bool
		name string
	}{{c.IDs, "ids"}, {c.Exact, "exact"}, {c.IgnoreEOS, "ignore_eos"}, {c.PromptCache, "prompt_cache"},
		{c.Scores, "scores"}} {
		if cap.is {
			can = append(can, cap.name)
		}
	}
	return strings.Join(can, " ")
}

type device struct {
	Class  record.DeviceClass `json:"class"`
	Name   string             `json:"name"`
	Detail map[string]string  `json:"detail"`
}

// parse reads a line. It refuses what no engine may say, whatever it was asked.
func parse(line []byte) (message, error) {
	var m message
	if !utf8.Valid(line) {
		return m, errors.New("it is not UTF-8")
	}
	if err := onlyOnce(line); err != nil {
		return m, err
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, plainly(err)
	}
	return m, m.check()
}

// onlyOnce refuses what is no JSON object, and one in which a name stands twice: readers differ in which of the two
// they take.
func onlyOnce(line []byte) error {
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("it is no JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return plainly(err)
		}
		name, _ := t.(string) // in an object it is one
		if seen[name] {
			return fmt.Errorf("%.40q stands in it twice", name)
		}
		seen[name] = true
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return plainly(err)
		}
	}
	return nil
}

// plainly says in words of JSON what the parser says in words of Go.
func plainly(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("%q is a %s there, which is not what it should be", kind.Field, kind.Value)
	}
	return fmt.Errorf("it is no JSON object: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// check looks at what is right or wrong by itself.
func (m message) check() error {
	for _, c := range []struct {
		wrong bool
		text  string
	}{
		{m.ID < 1, `"id" is missing, or less than 1`},
		{!slices.Contains([]string{evAlive, evStage, evToken, evDone, evError}, m.Event),
			fmt.Sprintf(`"event" is %.40q: alive, stage, token, done or error is right`, m.Event)},
		{m.Token != nil && *m.Token < 0, `"token" is negative`},
		{slices.ContainsFunc(m.PromptIDs, func(id int) bool { return id < 0 }), `"prompt_ids" has a negative one`},
		{min(m.PromptTokens, m.Generated, m.cached(), m.Context) < 0, "a count is negative"},
		{m.Event == evError && strings.TrimSpace(m.Message) == "", `an error without a "message"`},
		{m.Event == evStage && strings.TrimSpace(m.Stage) == "", `a stage without its name in "stage"`},
	} {
		if c.wrong {
			return errors.New(c.text)
		}
	}
	return nil
}

// checkHello looks at an answer to hello, of this version of the protocol.
func (m message) checkHello(clock string) error {
	switch {
	case m.Name == "":
		return errors.New(`"name" is missing`)
	case m.Version == "":
		return errors.New(`"version" is missing: figures of another version are other figures`)
	case m.Device == nil || !slices.Contains([]record.DeviceClass{record.CPU, record.GPU, record.SoftwareAdapter},
		m.Device.Class):
		return fmt.Errorf(`"device" needs a "class": %s, %s or %s`, record.CPU, record.GPU, record.SoftwareAdapter)
	case m.Caps.Scores && !m.Caps.IDs:
		return errors.New(`"caps" has "scores" without "ids": a text that is scored is one of ids`)
	case m.Clock != "" && m.Clock != clock:
		return fmt.Errorf(`"clock" is %.40q, and %q was offered`, m.Clock, clock)
	}
	return nil
}

// example is what was expected of an engine that can do such things, for who wrote it; a line that is to be a done is
// answered by one.
func example(op string, id int, line []byte, c caps) string {
	switch done := bytes.Contains(line, []byte(`"done"`)); {
	case op == opHello:
		return fmt.Sprintf(`{"id":%d,"event":"done","protocol":%d,"name":"my-engine","version":"1","device":{"class":"cpu"}}`, id, Version)
	case op == opScore && !done:
		return fmt.Sprintf(`{"id":%d,"event":"token","token":5,"logprob":-0.5,"top":[{"token":5,"logprob":-0.5},{"token":7,"logprob":-1.25}]}`, id)
	case op == opGenerate && !done && c.IDs:
		return fmt.Sprintf(`{"id":%d,"event":"token","token":5,"text":"a"}`, id)
	case op == opGenerate && !done:
		return fmt.Sprintf(`{"id":%d,"event":"token","text":"a"}`, id)
	case op == opGenerate && c.IDs:
		return fmt.Sprintf(`{"id":%d,"event":"done","finish":"length","prompt_ids":[1,7],"generated":4}`, id)
	case op == opGenerate:
		return fmt.Sprintf(`{"id":%d,"event":"done","finish":"length","prompt_tokens":2,"generated":4}`, id)
	}
	return fmt.Sprintf(`{"id":%d,"event":"done"}`, id)
}
