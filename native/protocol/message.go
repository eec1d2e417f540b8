package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// Version of the protocol. It changes if existing engines would no longer work.
const Version = 1

// Operations of requests.
const (
	opHello    = "hello"
	opLoad     = "load"
	opGenerate = "generate"
	opScore    = "score" // only if hello has "scores"
	opUnload   = "unload"
	opCancel   = "cancel" // not answered
)

// fields are those of a request, which has its id and op besides.
type fields map[string]any

// model is what load is asked for.
type model struct {
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"`
	Format  string `json:"format"`
	SHA256  string `json:"sha256,omitempty"`
	Context int    `json:"context,omitempty"`
}

// Events of answers. A request is answered by any number of the first three and one of the last two.
const (
	evAlive = "alive"
	evStage = "stage"
	evToken = "token"
	evDone  = "done"
	evError = "error"
)

// message is a line from an engine.
type message struct {
	ID    int    `json:"id"`
	Event string `json:"event"`

	// done, of hello
	Protocol int            `json:"protocol"`
	Name     string         `json:"name"`
	Version  string         `json:"version"`
	Caps     caps           `json:"caps"`
	Formats  []string       `json:"formats"`
	Device   *record.Device `json:"device"`
	Clock    string         `json:"clock"`

	// done, of hello and of load
	Policy map[string]string `json:"policy"`
	// done, of hello
	Parts map[string]string `json:"parts"`
	// done, of load
	Context int             `json:"context"`
	Weights record.Sameness `json:"weights"`
	Ran     []ran.Row       `json:"ran"`
	// done, of load and of generate
	Held map[string]float64 `json:"held"`

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

	// of a batch: the row of a token, and the results of all rows
	Row  int       `json:"row"`
	Rows []message `json:"rows"`

	// done, of generate with a profile
	Profile *profile `json:"profile"`

	// error
	Class   string `json:"class"`
	Message string `json:"message"`
}

// candidate is a token with its probability.
type candidate struct {
	Token   *int     `json:"token"`
	LogProb *float64 `json:"logprob"`
}

// last reports whether the message ends its request.
func (m message) last() bool { return m.Event == evDone || m.Event == evError }

// cached returns the number of cached prompt tokens; 0 if not reported.
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
	Profiles    bool `json:"profiles"`
}

// String lists the capabilities.
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

// parse parses a line. It refuses what is invalid in any answer.
func parse(line []byte) (message, error) {
	var m message
	if !utf8.Valid(line) {
		return m, errors.New("not UTF-8")
	}
	err := json.Unmarshal(line, &m)
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && kind.Field != "" {
		return m, fmt.Errorf("%q has the wrong type (%s)", kind.Field, kind.Value)
	}
	if err != nil {
		return m, errors.New("not a JSON object")
	}
	return m, m.check()
}

// check refuses invalid values.
func (m message) check() error {
	for _, c := range []struct {
		wrong bool
		text  string
	}{
		{m.ID < 1, `"id" is missing or less than 1`},
		{!slices.Contains([]string{evAlive, evStage, evToken, evDone, evError}, m.Event),
			fmt.Sprintf(`"event" is %.40q; use alive, stage, token, done or error`, m.Event)},
		{m.Token != nil && *m.Token < 0, `"token" is negative`},
		{slices.ContainsFunc(m.PromptIDs, func(id int) bool { return id < 0 }), `"prompt_ids" has a negative id`},
		{min(m.PromptTokens, m.Generated, m.cached(), m.Context) < 0, "a count is negative"},
		{m.Weights != "" && !slices.Contains(record.Converted(), m.Weights),
			fmt.Sprintf(`"weights" is %.40q; use same_bits, same_values or other_values`, string(m.Weights))},
		{m.Event == evError && strings.TrimSpace(m.Message) == "", `an error lacks "message"`},
		{m.Event == evStage && strings.TrimSpace(m.Stage) == "", `a stage lacks its name in "stage"`},
	} {
		if c.wrong {
			return errors.New(c.text)
		}
	}
	return nil
}

// checkHello checks an answer to hello.
func (m message) checkHello(clock string) error {
	switch {
	case m.Name == "":
		return errors.New(`"name" is missing`)
	case m.Version == "":
		return errors.New(`"version" is missing; without it figures of different versions would be mixed`)
	case m.Device == nil || !slices.Contains(record.DeviceClasses, m.Device.Class):
		return fmt.Errorf(`"device" needs a "class": one of %s`, record.DeviceClasses)
	case m.Caps.Scores && !m.Caps.IDs:
		return errors.New(`"caps" has "scores" without "ids"; scored texts are given as ids`)
	case m.Clock != "" && m.Clock != clock:
		return fmt.Errorf(`"clock" is %.40q, but %q was offered`, m.Clock, clock)
	}
	return nil
}

// Limits for names and words that an engine puts into the record, because they appear in tables.
const (
	maxNames = 64
	maxWord  = 80 // characters
)

// tidy shortens a word to what fits in a table and removes control characters.
func tidy(s string) string {
	return cut(fault.OneLine(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)), maxWord)
}

// words keeps the first names of a table in alphabetical order, and returns how many were dropped.
func words(m map[string]string) (kept map[string]string, left int) {
	kept = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if len(kept) == maxNames {
			return kept, len(m) - maxNames
		}
		kept[tidy(name)] = tidy(m[name])
	}
	return kept, 0
}
