package axis

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// Names of axes that code refers to.
const (
	Engine      = "engine"
	Model       = "model"
	Prompt      = "prompt"
	Input       = "input_length"
	Output      = "output_length"
	Traffic     = "traffic"
	Concurrency = "concurrency"
	BatchSize   = "batch_size"
	Turns       = "turns"
	Temperature = "temperature"
	Context     = "context"
	DType       = "dtype"
	KVDType     = "kv_cache_dtype"
	Weights     = "weights"
	Threads     = "threads"
	Start       = "start"
	Storage     = "storage"
	Stored      = "stored"
	Isolation   = "isolation"
	PromptCache = "cache"
)

// Fields of results beside the axes.
const (
	Device = "device"
	Run    = "run"
)

// table is in the order in which labels and sentences name axes.
var table = []*Axis{
	{Name: Engine, Title: "engine", Phrase: "engines", Role: Task,
		Of: func(c *record.Cell) string { return c.Engine }},
	{Name: Model, Title: "model", Phrase: "models", Role: Task, Across: Unpaired,
		Of: func(c *record.Cell) string { return c.Model.Name }, Word: modelWords, Same: sameModel, Key: modelKey},
	// A prompt of a given length is whatever text has it in tokens.
	{Name: Prompt, Title: "prompt", Phrase: "prompts", Role: Task, Across: Unpaired, Of: given, Word: promptNumber,
		Same: func(a, b *record.Cell) bool { return a.Prompt == b.Prompt }},
	count(Axis{Name: Input, By: "input_len", Title: "input length", Phrase: "input lengths", Label: "input of %s",
		Role: Task, Across: Unpaired}, func(c *record.Cell) int { return c.InputTokens }),
	count(Axis{Name: Output, By: "output_len", Title: "output length", Phrase: "output lengths", Label: "%s tokens",
		Role: Task, Across: Nothing}, func(c *record.Cell) int { return c.MaxTokens }),
	count(Axis{Name: Concurrency, Title: "concurrent clients", Phrase: "numbers of clients", Role: Task, Part: Traffic,
		Rest: but(record.ClosedLoop)}, atOnce(record.ClosedLoop)),
	count(Axis{Name: BatchSize, Title: "requests in a batch", Phrase: "batch sizes", Role: Task, Part: Traffic,
		Rest: but(record.Batch)}, atOnce(record.Batch)),
	count(Axis{Name: Turns, Title: "turns of a conversation", Phrase: "numbers of turns", Role: Task, Part: Traffic,
		Rest: butTurns}, turns),
	{Name: Traffic, Title: "traffic", Phrase: "kinds of traffic", Role: Task, Across: Unpaired, Of: trafficWords,
		Same: sameTraffic, Key: func(c *record.Cell) string { return trafficKey(c.Traffic) }},
	{Name: Temperature, Title: "temperature", Phrase: "temperatures", Label: "temperature %s", Unset: "0",
		Role: Measurement, Across: Nothing, Of: temperature,
		Number: func(c *record.Cell) float64 { return c.Temperature }},
	count(Axis{Name: Context, Title: "context window", Phrase: "contexts", Label: "context %s", Role: Setting},
		func(c *record.Cell) int { return c.Model.Context }),
	{Name: DType, Title: "dtype", Phrase: "dtypes", Unset: "default", Role: Setting, Word: dtypeWord,
		Of: func(c *record.Cell) string { return c.DType }},
	{Name: KVDType, Title: "KV cache dtype", Phrase: "KV cache dtypes", Label: "KV cache %s", Unset: "default",
		Role: Setting, Across: Unpaired, Of: func(c *record.Cell) string { return c.KVDType }},
	{Name: Weights, Title: "weights", Phrase: "forms of weights", Label: "weights %s", Unset: "as-is", Role: Setting,
		Own: true, Of: func(c *record.Cell) string { return c.Weights }},
	count(Axis{Name: Threads, Title: "threads", Phrase: "numbers of threads", Label: "%s threads", Unset: "default",
		Role: Setting}, func(c *record.Cell) int { return c.Threads }),
	{Name: Start, Title: "start", Phrase: "kinds of start", Label: "%s start", Unset: "any", Role: Measurement,
		Across: Unpaired, Of: func(c *record.Cell) string { return c.Start }},
	{Name: Storage, Title: "storage", Phrase: "kinds of storage", Label: "storage %s", Unset: "default", Role: Setting,
		Own: true, Of: func(c *record.Cell) string { return c.Storage }},
	{Name: Stored, Title: "stored before", Phrase: "states of the store", Label: "%s store", Unset: ran.StoredEmpty,
		Role: Measurement, Across: Unpaired, Own: true, Of: func(c *record.Cell) string { return c.Stored }},
	{Name: Isolation, Title: "isolation", Phrase: "kinds of isolation", Role: Measurement, Across: OnRequest,
		Of: isolation, Names: processes},
	{Name: PromptCache, Title: "prompt cache", Phrase: "kinds of prompt cache", Label: "prompt cache %s", Role: Setting,
		Own: true, Of: func(c *record.Cell) string { return c.PromptCache }},
}

// count completes an axis of whole numbers above 0; 0: none is requested.
func count(a Axis, of func(*record.Cell) int) *Axis {
	a.Of = func(c *record.Cell) string {
		if n := of(c); n > 0 {
			return strconv.Itoa(n)
		}
		return ""
	}
	a.Number = func(c *record.Cell) float64 {
		if n := of(c); n > 0 {
			return float64(n)
		}
		return math.NaN()
	}
	return &a
}

// given is a prompt that the plan has as text; empty: it requests a length.
func given(c *record.Cell) string {
	if c.InputTokens > 0 {
		return ""
	}
	return c.Prompt
}

// temperature is empty for greedy requests, as for plans that set none.
func temperature(c *record.Cell) string {
	if c.Temperature == 0 {
		return ""
	}
	return strconv.FormatFloat(c.Temperature, 'g', -1, 64)
}

func promptNumber(c *record.Cell) string {
	if c.InputTokens > 0 {
		return ""
	}
	return "prompt " + strconv.Itoa(c.PromptID)
}

// isolation is what a session starts afresh, and what repetitions and cells share.
func isolation(c *record.Cell) string {
	switch {
	case c.Shared:
		return c.Isolation + " shared"
	case c.Reused:
		return c.Isolation + " reused"
	}
	return c.Isolation
}

// processes says what repetitions run in.
var processes = map[string]string{record.OfLaunch: "new processes", record.OfLaunch + " reused": "reused processes",
	record.OfLaunch + " shared": "shared processes", record.OfTab: "new tabs", record.OfTab + " reused": "reused tabs",
	record.OfTab + " shared": "shared tabs", record.OfServer: "a running server"}

func modelKey(c *record.Cell) string {
	return c.Model.Name + " " + c.Model.SHA256 + " " + c.Model.DType
}

// sameModel compares what is in the files, and names if only a server has the file: then nobody has verified it. Forms
// of a model are the same model.
func sameModel(a, b *record.Cell) bool {
	m, n := &a.Model, &b.Model
	switch {
	case Forms(a, b):
		return true
	case Unverified(m) || Unverified(n):
		return m.Name != "" && m.Name == n.Name && m.Form == n.Form
	}
	return m.SHA256 != "" && m.Values() == n.Values()
}

// Forms reports whether a plan names two files as forms of one model for two engines.
func Forms(a, b *record.Cell) bool {
	m, n := &a.Model, &b.Model
	return m.Form != "" && n.Form != "" && m.Name == n.Name && a.Engine != b.Engine &&
		(m.SHA256 == "" || m.Values() != n.Values())
}

// Unverified reports whether only the model's name is known, because a server has its file.
func Unverified(m *record.Model) bool { return m.Format == record.Served && m.SHA256 == "" }

// OtherForm reports whether two cells of one engine have forms of one model: its weights in another dtype or
// quantisation. Forms have the model's name and shape.
func OtherForm(a, b *record.Cell) bool {
	m, n := &a.Model, &b.Model
	return a.Engine == b.Engine && m.Layers > 0 && m.Values() != n.Values() && work(m) == work(n) &&
		shape(m) == shape(n)
}

// shape is what all forms of a model have in common.
func shape(m *record.Model) [7]any {
	return [7]any{m.Architecture, m.Layers, m.Heads, m.KVHeads, m.HeadDim, m.Hidden, m.Vocab}
}

// work is the name of a model without its dtype, in lower case.
func work(m *record.Model) string { return strings.ToLower(dtype.Without(m.Name)) }

// Called is the name by which people know a model, without its dtype.
func Called(m *record.Model) string {
	if m.Random() { // its name is a description
		return m.Name
	}
	return cmp.Or(m.Title, dtype.Without(m.Name), m.Name)
}

// modelWords are the name and the dtype of a model's weights.
func modelWords(c *record.Cell) string {
	if c.Model.DType == "" {
		return Called(&c.Model)
	}
	return Called(&c.Model) + " " + dtype.People(c.Model.DType)
}

// modelMatches reports whether a text names a model: by its name, with its dtype or without, by its file with the path,
// without it, or without the extension, or by its dtype alone. Files that llama-quantize makes of one share its name.
func modelMatches(m *record.Model, text string) bool {
	if text == "" {
		return m.Name == ""
	}
	names := []string{m.Name, m.Title, m.Form, modelWords(&record.Cell{Model: *m})}
	for _, path := range []string{m.Name, m.File} {
		if base := filepath.Base(path); path != "" {
			names = append(names, filepath.Clean(path), base, strings.TrimSuffix(base, filepath.Ext(base)))
		}
	}
	return slices.Contains(names, text) || slices.Contains(names, filepath.Clean(text)) ||
		strings.EqualFold(text, m.DType)
}

// dtypeWord is a requested dtype, which says by itself what it is.
func dtypeWord(c *record.Cell) string { return cmp.Or(c.DType, "default dtype") }
