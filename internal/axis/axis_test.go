package axis_test

import (
	"math"
	"testing"

	"llmparity/internal/axis"
	"llmparity/internal/record"
)

func names(all []*axis.Axis) (out []string) {
	for _, x := range all {
		out = append(out, x.Name)
	}
	return out
}

func all(*axis.Axis) bool { return true }

func cell() record.Cell {
	return record.Cell{Engine: "one", Prompt: "text", MaxTokens: 8, Isolation: record.OfLaunch,
		Model: record.Model{Name: "tiny", SHA256: "aa", Context: 256}}
}

// Every row says what labels, sentences and plans need, under a name of its own, and equal cells have equal keys.
func TestRowsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	c := cell()
	for _, x := range axis.Of(&c) {
		if x.Name == "" || x.Title == "" || x.Phrase == "" || x.Of == nil || seen[x.Name] || seen[x.ByName()] {
			t.Errorf("%+v", x)
		}
		seen[x.Name], seen[x.ByName()] = true, true
		if x.Part != "" && (x.Rest == nil || axis.Named(x.Part).Part != "") {
			t.Errorf("%s is a part of %q without its rest", x.Name, x.Part)
		}
		if !x.Equal(&c, &c) || axis.Named(x.Name) != x || axis.Named(x.ByName()) != x {
			t.Errorf("%s is not itself", x.Name)
		}
	}
}

// A cell that differs along one axis differs along that alone, by comparison and by key.
func TestDifferNamesTheAxis(t *testing.T) {
	for name, change := range map[string]func(*record.Cell){
		axis.Model:       func(c *record.Cell) { c.Model.SHA256 = "bb" },
		axis.Prompt:      func(c *record.Cell) { c.Prompt = "another" },
		axis.Input:       func(c *record.Cell) { c.InputTokens = 16 },
		axis.Output:      func(c *record.Cell) { c.MaxTokens = 9 },
		axis.Traffic:     func(c *record.Cell) { c.Traffic = &record.Traffic{Loop: record.Batch, Concurrency: 2} },
		axis.Temperature: func(c *record.Cell) { c.Temperature = 0.7 },
		axis.Context:     func(c *record.Cell) { c.Model.Context = 512 },
		axis.DType:       func(c *record.Cell) { c.DType = "f16" },
		axis.KVDType:     func(c *record.Cell) { c.KVDType = "q8_0" },
		axis.Weights:     func(c *record.Cell) { c.Weights = "f32" },
		axis.Threads:     func(c *record.Cell) { c.Threads = 2 },
		axis.Start:       func(c *record.Cell) { c.Start = record.ColdStart },
		axis.Isolation:   func(c *record.Cell) { c.Reused = true },
		axis.PromptCache: func(c *record.Cell) { c.PromptCache = record.CacheOn },
		"ubatch":         func(c *record.Cell) { c.Settings = map[string]string{"ubatch": "64"} },
	} {
		a, b := cell(), cell()
		change(&b)
		if got := names(axis.Differ(&a, &b, all)); len(got) != 1 || got[0] != name {
			t.Errorf("%s: cells differ in %v", name, got)
		}
		if axis.Key(&a, all) == axis.Key(&b, all) {
			t.Errorf("%s: the key is the same", name)
		}
		if x := axis.Named(name); axis.Key(&a, func(o *axis.Axis) bool { return o.Name != name }) !=
			axis.Key(&b, func(o *axis.Axis) bool { return o.Name != name }) && name != axis.Input {
			t.Errorf("%s: the key of the other axes differs", x.Title)
		}
	}
}

// Two engines may have their own forms of a model, and a server's model is known by its name.
func TestModelsAreComparedByTheirWeights(t *testing.T) {
	type model = record.Model
	for what, c := range map[string]struct {
		a, b  model
		alike bool // one engine
		same  bool
	}{
		"other names":  {model{Name: "m", SHA256: "aa"}, model{Name: "n", SHA256: "aa"}, false, true},
		"other files":  {model{Name: "m", SHA256: "aa"}, model{Name: "m", SHA256: "bb"}, false, false},
		"same values":  {model{SHA256: "aa"}, model{SHA256: "bb", SameAs: "aa"}, false, true},
		"no file":      {model{Name: "m"}, model{Name: "m"}, false, false},
		"server":       {model{Name: "m", Format: record.Served}, model{Name: "m", SHA256: "aa"}, false, true},
		"forms":        {model{Name: "m", Form: "a", SHA256: "aa"}, model{Name: "m", Form: "b", SHA256: "bb"}, false, true},
		"forms of one": {model{Name: "m", Form: "a"}, model{Name: "m", Form: "b", SHA256: "b"}, true, false},
	} {
		a, b := record.Cell{Engine: "x", Model: c.a}, record.Cell{Engine: "y", Model: c.b}
		if c.alike {
			b.Engine = "x"
		}
		if x := axis.Named(axis.Model); x.Equal(&a, &b) != c.same || x.Equal(&b, &a) != c.same {
			t.Errorf("%s: want the same model: %v", what, c.same)
		}
	}
}

// A single request is one client of a loop, one request of a batch and one turn: sweeps begin with it.
func TestTrafficHasParts(t *testing.T) {
	one, four := cell(), cell()
	four.Traffic = &record.Traffic{Loop: record.ClosedLoop, Concurrency: 4, Requests: 16, Seed: 3}
	clients, batch := axis.Named(axis.Concurrency), axis.Named(axis.BatchSize)
	if clients.Number(&one) != 1 || clients.Number(&four) != 4 || clients.Rest(&one) != clients.Rest(&four) {
		t.Errorf("%g and %g clients, %s and %s", clients.Number(&one), clients.Number(&four), clients.Rest(&one),
			clients.Rest(&four))
	}
	if batch.Number(&one) != 1 || !math.IsNaN(batch.Number(&four)) || batch.Rest(&one) == batch.Rest(&four) {
		t.Errorf("a loop of clients is no batch: %g, %s", batch.Number(&four), batch.Rest(&four))
	}
	if got := names(axis.Differ(&one, &four, all)); len(got) != 1 || got[0] != axis.Traffic {
		t.Errorf("cells differ in %v: parts of the traffic are in its value", got)
	}
}

// Another engine's own settings are no difference.
func TestOwnAxesAreOfOneEngine(t *testing.T) {
	a, b := cell(), cell()
	b.Engine, b.Settings, b.Weights = "two", map[string]string{"two_version": "1.2"}, "f32"
	if got := names(axis.Differ(&a, &b, all)); len(got) != 1 || got[0] != axis.Engine {
		t.Errorf("cells differ in %v", got)
	}
	b.Settings["model"], b.Settings["device"], b.Settings["a.b"] = "m", "cpu", "c" // like axes and fields of results
	for _, x := range axis.Of(&b) {
		if y := axis.Named(x.Name); y.Of(&b) != x.Of(&b) || y.Own != x.Own {
			t.Errorf("%s is %q, and %q by its name", x.Name, x.Of(&b), y.Of(&b))
		}
	}
	b.Settings["ubatch"] = "64"
	for name, want := range map[string]string{"two.ubatch": "ubatch", "two.model": "model_setting"} {
		if x := axis.Named(name); x.Name != want || x.Of(&b) == "" {
			t.Errorf("a plan's %s is %s, want %s", name, x.Name, want)
		}
	}
	x := axis.Named("two_version")
	if !x.Version() || x.Number != nil || x.In(&b) != "1.2" || x.In(&a) != "" {
		t.Errorf("%+v: versions are no numbers", x)
	}
}

// Files that llama-quantize makes of one share its name: each is named by its file, its path or its dtype.
func TestModelIsNamedByItsFile(t *testing.T) {
	q4, q8 := cell(), cell()
	for c, file := range map[*record.Cell]string{&q4: "/models/smol-q4.gguf", &q8: "/models/smol-q8.gguf"} {
		c.Model.Name, c.Model.File = "SmolLM2 135M Instruct", file
	}
	q4.Model.DType, q8.Model.DType = "q4_0", "q8_0"
	x := axis.Named(axis.Model)
	for _, text := range []string{"/models/smol-q8.gguf", "/models/./smol-q8.gguf", "smol-q8.gguf", "smol-q8", "q8_0",
		"Q8_0"} {
		if !x.Matches(&q8, text) || x.Matches(&q4, text) {
			t.Errorf("%q: matches %v, and another form %v", text, x.Matches(&q8, text), x.Matches(&q4, text))
		}
	}
	values, found := x.Among([]*record.Cell{&q4, &q8}, "smol-q2")
	if found || len(values) != 2 {
		t.Errorf("smol-q2 found %v among %q, want both files", found, values)
	}
}
