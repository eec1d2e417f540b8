// Package ollama drives Ollama: a server of its own for every launch, or one that runs already.
//
// It speaks Ollama's own interface, raw: no template is applied. A line of its stream is a piece of text, not a token:
// what ends inside a character is held back, and no ids are told. The counts of tokens are Ollama's. The model lives in
// a child of the server, the runner, which has another pid whenever Ollama starts it anew, so the server's tree of
// processes is sampled.
//
// What Ollama can't do, and a reader of figures must know: it can't be told to go on behind the end of a text; its KV
// cache is f16, or quantised where a GPU has flash attention, never f32; it keeps the last prompt and what came of it
// in its cache and counts the tokens that it took from there as evaluated; it cuts a prompt that is too long without a
// word. The third is kept from mattering by another text before each generation, where the cache has its default
// policy, and of a server that we started its log tells how many tokens came from the cache in spite of that. The
// fourth is refused before it happens.
package ollama

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/program"
	"llmparity/native/wire"
)

// Name is the engine's name in plans and records.
const Name = "ollama"

// KVTypes are the element types that Ollama's KV cache may have.
func KVTypes() []string { return []string{"f16", "q8_0", "q4_0"} }

// Config is what a user may choose of Ollama. The zero value starts a server that computes on the CPU.
type Config struct {
	Path  string // of ollama; empty: searched for
	Cache string // the cache folder, where a build of our own lies under ollama/; empty: not searched
	URL   string // of a server that runs already; empty: one is started

	Threads int    // 0: as many as Ollama likes
	KVType  string // of a server that we start; empty: f16
	// how long the model stays after a request, as in 10m, or -1 for ever; empty: for ever in a server of ours, else
	// 15m
	KeepAlive string
	GPU       bool // a server that we start may use a GPU; one that runs already does as it likes

	// Slots is how many generations go on at a time, 1 unless set: a server that we start makes a context for each, one
	// that runs already has as many as its owner gave it, and lets the others wait.
	Slots int
	// PromptCache leaves what a prompt put into the cache there for the next that begins alike, as a conversation's
	// turns do.
	PromptCache bool
}

// Check refuses what makes no sense.
func (c Config) Check() error {
	if c.URL != "" {
		if _, err := ParseURL(c.URL); err != nil {
			return err
		}
	}
	for _, own := range []struct {
		given bool
		flag  string
	}{{c.Path != "", "ollama"}, {c.KVType != "", "ollama-kv-type"}, {c.GPU, "ollama-gpu"}} {
		if own.given && c.URL != "" {
			return fault.New(fault.Usage, "leave one out",
				"--%s is for an Ollama that llmparity starts, and --ollama-url names one that runs", own.flag)
		}
	}
	switch _, err := c.keepAlive(); {
	case err != nil:
		return err
	case c.KVType != "" && !slices.Contains(KVTypes(), c.KVType):
		return fault.New(fault.Usage, "use "+strings.Join(KVTypes(), ", "), "--ollama-kv-type %s", c.KVType)
	case c.Threads < 0:
		return fault.New(fault.Usage, "", "--threads %d: at least 1 is needed", c.Threads)
	}
	return nil
}

func (c Config) slots() int { return max(1, c.Slots) }

// flushes tells whether another text goes before each prompt, to take what is like it out of the cache. Beside other
// generations that is not possible: their prompts must begin in other ways.
func (c Config) flushes() bool { return c.slots() == 1 && !c.PromptCache }

func (c Config) kvType() string { return cmp.Or(c.KVType, "f16") }

// KeepAlive is how long a model stays in a server that runs already, where nobody says.
const KeepAlive = 15 * time.Minute

// keepAlive is what Ollama takes: a duration with its unit, for ever where it is less than none.
func (c Config) keepAlive() (string, error) {
	text := c.KeepAlive
	switch {
	case text == "" && c.URL == "":
		text = "-1"
	case text == "":
		text = KeepAlive.String()
	}
	if d, err := stay(text); err == nil && d != 0 {
		return d.String(), nil
	}
	return "", fault.New(fault.Usage, "write it as in 10m, or -1 for ever; the model must stay from one request to the next", "--ollama-keep-alive %q", text)
}

// Ollama is the engine.
type Ollama struct {
	config Config

	known program.Known[identity]

	mu    sync.Mutex
	depot *depot // what Prepare put into a server that runs already; nil: nothing
}

// New makes the engine; nothing is looked for yet.
func New(c Config) *Ollama { return &Ollama{config: c} }

// Name is Name.
func (*Ollama) Name() string { return Name }

// Caps is what Ollama can do.
func (o *Ollama) Caps() engine.Caps {
	c := engine.Caps{Resident: true, PromptCache: true, Requests: o.config.slots(), Isolation: record.OfLaunch,
		Rounds: true} // it has no KV cache of f32
	if o.config.URL != "" {
		c.Served, c.Isolation = true, record.OfServer
	}
	return c
}

// Check looks for Ollama and for the model.
func (o *Ollama) Check(ctx context.Context, m engine.Model) error {
	if err := o.config.Check(); err != nil {
		return err
	}
	if err := o.checkModel(m); err != nil {
		return err
	}
	if o.config.URL == "" {
		_, err := o.binary(ctx)
		return err
	}
	a, c, err := o.server()
	if err != nil {
		return err
	}
	if _, err := reach(ctx, a, c); err != nil {
		return err
	}
	if m.Format == record.Served {
		_, err = c.known(ctx, m.Name)
	}
	return err
}

// Accepts refuses to choose the KV cache of a server that runs already, beside what Check refuses.
func (o *Ollama) Accepts(ctx context.Context, m engine.Model) engine.Verdict {
	if c := o.config; c.URL != "" && c.KVType != "" {
		return engine.Refuse(fault.New(fault.NotSupported, "leave it out",
			"kv_cache_dtype: %s: an Ollama that runs already has its own", c.KVType))
	}
	return engine.Refuse(o.Check(ctx, m))
}

// Files is nothing: which file of its store a model is, is not known.
func (*Ollama) Files(engine.Model) []string { return nil }

// Held is not known of a server that runs already.
func (o *Ollama) Held(m engine.Model) engine.Held {
	if o.config.URL != "" {
		return engine.Held{Path: m.Path}
	}
	return engine.Held{As: Memory, Path: m.Path}
}

// checkModel leaves the architecture to Ollama.
func (o *Ollama) checkModel(m engine.Model) error {
	switch m.Format {
	case record.Served:
		if o.config.URL == "" {
			return engine.SetUp(fault.New(fault.Usage, "give --ollama-url, or a GGUF file with --model",
				"the model %s is one that a server knows, and the Ollama that is started here knows none", m.Name))
		}
		return nil
	case "", "gguf":
	default:
		return engine.SetUp(fault.New(fault.BadModel, "name its GGUF", "Ollama runs GGUF files; the model %s is a %s package",
			m.Name, m.Format))
	}
	return program.CheckGGUF(m)
}

// server gives the server that runs already.
func (o *Ollama) server() (address, *client, error) {
	u, err := ParseURL(o.config.URL)
	if err != nil {
		return address{}, nil, engine.SetUp(err)
	}
	a := address{u}
	return a, newClient(u.String(), a.port() != 0), nil
}

// patience is how long a server that runs already may take for an answer that costs it nothing.
const patience = 10 * time.Second

// reach asks a server for its version.
func reach(ctx context.Context, a address, c *client) (string, error) {
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := c.version(soon)
	if err == nil || ctx.Err() != nil {
		return v, err
	}
	return "", unreachable(a.URL, soon, err)
}

// unreachable is for a server that can't be used.
func unreachable(u *url.URL, soon context.Context, err error) error {
	do := "start one with `ollama serve`, or leave --ollama-url out and one is started"
	why := err.Error()
	refused := wire.RefusalOf(err)
	switch {
	case soon.Err() != nil:
		why = fmt.Sprintf("it does not answer within %s", patience)
	case refused != nil && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden):
		do = "ask whoever runs it for a way past what guards it: Ollama itself takes no key"
	case refused != nil, engine.ClassOf(err) == record.BadOutput:
		do = "give the address of an Ollama server, as in " + DefaultURL
	}
	return engine.SetUp(fault.New(fault.ServerUnreachable, do, "the Ollama server at %s can't be used: %s", u, why))
}

// known finds a model that the server has; one that it has not is told with those that it has.
func (c *client) known(ctx context.Context, name string) (listed, error) {
	models, err := c.tags(ctx)
	if err != nil {
		return listed{}, fmt.Errorf("asking Ollama for its models: %w", err)
	}
	m, ok := find(models, name)
	if !ok {
		return listed{}, engine.SetUp(unknownModel(name, models))
	}
	return m, nil
}

func unknownModel(name string, models []listed) error {
	var names []string
	for _, m := range models {
		names = append(names, m.Name)
	}
	has := "it has none"
	if len(names) > 0 {
		slices.Sort(names)
		has = "it has " + strings.Join(names[:min(len(names), 30)], ", ")
		if more := len(names) - 30; more > 0 {
			has += fmt.Sprintf(" and %d more", more)
		}
	}
	return fault.New(fault.ServerUnreachable, "take one of its own, `ollama pull` one, or give a GGUF file",
		"the Ollama server has no model %q: %s", name, has)
}

// Describe says which Ollama would be used.
func (o *Ollama) Describe(ctx context.Context) (string, error) {
	if err := o.config.Check(); err != nil {
		return "", err
	}
	if o.config.URL == "" {
		b, err := o.binary(ctx)
		return b.version + "  " + b.path, err
	}
	a, c, err := o.server()
	if err != nil {
		return "", err
	}
	version, err := reach(ctx, a, c)
	return version + "  " + a.URL.String(), err
}
