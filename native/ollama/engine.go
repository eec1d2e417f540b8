// Package ollama drives Ollama: a new server for each launch, or one that is already running.
//
// It uses Ollama's own API, raw: no template is applied. A line of the stream is a piece of text, not a token, because
// Ollama withholds text that ends inside a character. There are no token ids, and token counts are Ollama's. The model
// is held by a child process of the server, the runner, whose pid changes whenever Ollama restarts it. So the server's
// process tree is sampled.
//
// Readers of figures must know these limits of Ollama:
//   - It cannot continue after the end of a text.
//   - Its KV cache is f16, or quantised on a GPU with flash attention, but never f32.
//   - It keeps the last prompt and answer in its cache, and counts tokens taken from there as evaluated. So another
//     text is generated before each prompt. For a server that we started, the log says how many tokens still came from
//     the cache.
//   - It silently truncates a prompt that is too long. Such a prompt is refused beforehand.
package ollama

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/record"
	"llmparity/native/place"
	"llmparity/native/program"
	"llmparity/native/wire"
)

// Name is the engine's name in plans and records.
const Name = "ollama"

// Config is the configuration of Ollama. The zero value starts a server that computes on the CPU.
type Config struct {
	Path  string // of ollama; empty: search for it
	Cache string // cache folder, with our own build in ollama/; empty: not searched
	URL   string // of a running server; empty: start one

	Threads int    // 0: Ollama's choice
	KVType  string // of a server that we start; empty: f16
	// KeepAlive is how long the model stays loaded after a request, e.g. 10m, or -1 for always. Empty: always in a
	// server that we start, otherwise 15m.
	KeepAlive string
	GPU       bool // a server that we start may use a GPU

	in *place.Place // where a server is started; nil: on this machine

	// Slots is how many requests run at a time, 1 unless set. A server that we start has a context for each; one that
	// is already running has its own number, and queues the others.
	Slots int
	// PromptCache keeps a prompt in the cache for the next one with the same beginning, as in a conversation.
	PromptCache bool
}

// Check refuses what makes no sense.
func (c Config) Check() error {
	if key := c.inherent(); key != "" {
		return fault.New(fault.Usage, "omit one of them",
			"--%s applies to a server that llmparity starts, --ollama-url to one that is running", key)
	}
	_, err := c.keepAlive()
	if err == nil && c.URL != "" {
		_, err = ParseURL(c.URL)
	}
	return err
}

// inherent returns the flag of a setting that a running server does not take; empty: none is set.
func (c Config) inherent() string {
	switch {
	case c.URL == "":
	case c.Path != "":
		return "ollama"
	case c.KVType != "":
		return "ollama-kv-type"
	case c.GPU:
		return "ollama-gpu"
	}
	return ""
}

func (c Config) slots() int { return max(1, c.Slots) }

// flushes reports whether another text goes before each prompt to remove it from the cache. With several slots that
// does not work; there, prompts must begin differently.
func (c Config) flushes() bool { return c.slots() == 1 && !c.PromptCache }

func (c Config) kvType() string { return cmp.Or(c.KVType, "f16") }

// KeepAlive is how long a model stays in a running server by default.
const KeepAlive = 15 * time.Minute

// keepAlive returns a duration with its unit; negative means always.
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
	return "", fault.New(fault.Usage, "use a duration such as 10m, or -1 for always",
		"--ollama-keep-alive %q does not keep the model loaded between requests", text)
}

// Ollama is the engine.
type Ollama struct {
	config Config

	known  program.Known[identity]
	client *client // of the running server; nil: none is named
	depot  *depot  // what Prepare puts into it
}

// New makes the engine without searching for anything.
func New(c Config) *Ollama {
	o := &Ollama{config: c, known: program.Known[identity]{In: c.in}}
	if u, err := ParseURL(c.URL); err == nil { // else Check reports the error
		o.client = newClient(u)
		o.depot = c.depot(o.client)
	}
	return o
}

// Name returns Name.
func (*Ollama) Name() string { return Name }

// Caps returns what Ollama can do.
func (o *Ollama) Caps() engine.Caps {
	c := engine.Caps{Resident: true, PromptCache: true, Requests: o.config.slots(), Isolation: record.OfLaunch,
		Rounds: true} // it has no f32 KV cache
	if o.config.URL != "" {
		c.Served, c.Isolation = true, record.OfServer
	}
	return c
}

// Room returns how much memory its container leaves.
func (o *Ollama) Room(ctx context.Context) (free int64, how string, ok bool) {
	return o.config.in.Room(ctx)
}

// Check finds Ollama and the model.
func (o *Ollama) Check(ctx context.Context, m models.Model) error {
	if err := o.config.Check(); err != nil {
		return err
	}
	if m.Format != record.Served {
		if err := program.CheckGGUF("Ollama", m); err != nil {
			return err
		}
	}
	switch {
	case m.Parts != nil:
		return engine.SetUp(fault.New(fault.NotSupported, "join the parts with llama.cpp's llama-gguf-split --merge",
			"Ollama takes a model as one file; %s has %d parts", m.Path, len(m.Parts)))
	case o.config.URL == "" && m.Format == record.Served:
		return engine.SetUp(fault.New(fault.Usage, "set --ollama-url, or name a GGUF file with --model",
			"model %s is on a server, but no Ollama server is named", m.Name))
	case o.config.URL == "":
		_, err := o.binary(ctx)
		return err
	}
	_, err := o.client.reach(ctx)
	if err == nil && m.Format == record.Served {
		_, err = o.client.known(ctx, m.Name)
	}
	return err
}

// particular are architectures of which Ollama loads only some files. 0.6.5 refuses a Phi-3 file without a sliding
// window ("invalid value for sliding_window"), and crashes at the first request to some Gemma 3 files.
var particular = []string{gguf.Phi3, gguf.Gemma3}

// Accepts also refuses to choose the KV cache of a running server.
func (o *Ollama) Accepts(ctx context.Context, m models.Model) engine.Verdict {
	if c := o.config; c.URL != "" && c.KVType != "" {
		return engine.Refuse(fault.New(fault.NotSupported, "omit it",
			"kv_cache_dtype %s: a running Ollama server has its own KV cache dtype", c.KVType))
	}
	if err := o.Check(ctx, m); err != nil || !slices.Contains(particular, m.Architecture) {
		return engine.Refuse(err)
	}
	return engine.Undecided("Ollama decides when it runs the model: it refuses or crashes on some %s files",
		m.Architecture)
}

// Named is a model on a running server, or one that Ollama has downloaded.
func (o *Ollama) Named(name string) string {
	if o.config.URL != "" {
		return record.Served + ":" + name
	}
	return Name + ":" + name
}

// Count asks a running server for one token, and returns its count of the prompt.
func (o *Ollama) Count(ctx context.Context, m models.Model, prompt string) (int, error) {
	keep, _ := o.config.keepAlive() // validated by Check
	options := map[string]any{"num_predict": 1}
	if m.Context > 0 { // the server truncates longer prompts
		options["num_ctx"] = m.Context
	}
	a, err := o.client.whole(ctx, generate{Model: m.Name, Prompt: prompt, Raw: true, KeepAlive: keep,
		Options: options})
	if err != nil {
		return 0, fmt.Errorf("counting tokens in Ollama: %w", err)
	}
	if a.count(prompted) == 0 {
		return 0, fault.New(fault.NotSupported, "use texts as prompts", "Ollama does not count the tokens of a prompt")
	}
	return a.count(prompted), nil
}

// Files returns nil: it is not known which file in its store is the model.
func (*Ollama) Files(models.Model) []string { return nil }

// Loaded returns nothing about memory for a running server, which has its own settings.
func (o *Ollama) Loaded(m models.Model) engine.Loaded {
	if o.config.URL != "" {
		return engine.Loaded{Path: m.Path}
	}
	return engine.Loaded{As: Memory, Path: m.Path}
}

// patience is how long a running server may take for a trivial answer.
const patience = 10 * time.Second

// reach asks a running server for its version.
func (c *client) reach(ctx context.Context) (string, error) {
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := c.version(soon)
	if err == nil || ctx.Err() != nil {
		return v, err
	}
	do := "start one with `ollama serve`, or omit --ollama-url to have one started"
	why := err.Error()
	switch r := wire.RefusalOf(err); {
	case soon.Err() != nil:
		why = fmt.Sprintf("no answer within %s", patience)
	case r.Denied():
		do = "ask its owner for access; Ollama itself takes no key"
	case r != nil, engine.ClassOf(err) == record.BadOutput:
		do = "use the address of an Ollama server, such as " + DefaultURL
	}
	return "", engine.SetUp(fault.New(fault.ServerUnreachable, do, "Ollama server at %s: %s", c.Base, why))
}

// known finds a model on the server. The error for an unknown model lists those that the server has.
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
	has := "it has none"
	if len(models) > 0 {
		var names []string
		for _, m := range models {
			names = append(names, m.Name)
		}
		slices.Sort(names)
		has = "it has " + strings.Join(names, ", ")
	}
	return fault.New(fault.ServerUnreachable, "use one of these, `ollama pull` it, or name a GGUF file",
		"the Ollama server does not have model %q: %s", name, has)
}

// find returns the program that would be started, or the server if one is named.
func (o *Ollama) find(ctx context.Context) engine.Part {
	if err := o.config.Check(); err != nil {
		return engine.Part{Err: err}
	}
	if o.config.URL == "" {
		b, err := o.binary(ctx)
		if err != nil {
			return engine.Part{Err: err}
		}
		return engine.Part{Version: b.version, Path: b.path, Backends: program.Backends(b.path, "lib/ollama",
			"lib/ollama/*", "../lib/ollama", "../lib/ollama/*", "build/lib/ollama")}
	}
	version, err := o.client.reach(ctx)
	if err != nil {
		return engine.Part{Err: err}
	}
	return engine.Part{Version: version, Path: o.client.Base}
}

// Settings returns what is requested of a server that we start. Those of a running server are known after the load.
func (o *Ollama) Settings(m models.Model) map[string]string {
	if o.config.URL != "" {
		return map[string]string{"weights_dtype": m.DType}
	}
	s := map[string]string{"weights_dtype": m.DType, "kv_dtype": o.config.kvType(),
		"parallel": strconv.Itoa(o.config.slots()), "flash_attention": "off", "mmap": "off"}
	if o.config.kvType() != "f16" {
		s["flash_attention"] = "on" // a quantised cache needs it
	}
	if o.config.GPU {
		s["gpu"] = "allowed"
	}
	if m.Context > 0 {
		s["context"] = strconv.Itoa(m.Context)
	}
	o.config.in.Describe(s)
	return s
}
