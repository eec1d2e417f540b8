package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/plan"
)

// naive makes a plan's cells as docs/plans.md tells it, one after another and without any haste: each is its axes'
// values.
func naive(p plan.Plan) []map[string]string {
	axes := map[string][]string{"model": {"m"}, "engine": p.Engines, "input_length": texts(p.InputLengths),
		"output_length": {"4"}, "context": {"64"},
		"dtype": {""}, "threads": {"0"}, "webllm_version": {""}}
	listed := map[string]bool{"model": true, "engine": true, "input_length": true}
	for name, values := range map[string][]string{"output_length": texts(p.OutputLengths), "context": texts(p.Contexts),
		"dtype":   p.DTypes,
		"threads": texts(p.ThreadCounts), "webllm_version": p.WebLLMVersions} {
		if len(values) > 0 {
			axes[name], listed[name] = values, true
		}
	}
	all := product(axes)
	all = slices.DeleteFunc(all, func(c map[string]string) bool { return idle(axes, c) })
	all = slices.DeleteFunc(all, func(c map[string]string) bool {
		return slices.ContainsFunc(p.Exclude,
			func(of plan.Cells) bool { return chooses(of, c, func(string) bool { return true }) })
	})
	own, added := slices.Clone(all), []map[string]string{}
	before := make([]map[string]string, len(own))
	for i, c := range own {
		before[i] = maps.Clone(c)
	}
	for _, of := range p.Include {
		found := false
		for i := range own {
			if chooses(of, before[i], func(name string) bool { return listed[name] }) {
				found = true
				for name, values := range of {
					if !listed[name] {
						own[i][name] = values[0]
					}
				}
			}
		}
		if found {
			continue
		}
		first := map[string][]string{}
		for name, values := range axes {
			first[name] = values[:1]
		}
		first["engine"] = p.Engines
		maps.Copy(first, of)
		more := product(first)
		added = append(added, slices.DeleteFunc(more, func(c map[string]string) bool { return idle(first, c) })...)
	}
	return append(own, added...)
}

// idle are cells of an engine that an axis says nothing to, but for the axis' first value.
func idle(axes map[string][]string, c map[string]string) bool {
	return c["engine"] == "webllm" && c["threads"] != axes["threads"][0] || c["engine"] != "webllm" &&
		c["webllm_version"] != axes["webllm_version"][0]
}

// chooses tells whether a cell has all values of an entry; an engine that an axis says nothing to has no value of it.
func chooses(of plan.Cells, c map[string]string, by func(string) bool) bool {
	for name, values := range of {
		nothing := name == "threads" && c["engine"] == "webllm" || name == "webllm_version" && c["engine"] != "webllm"
		if by(name) && (nothing || !slices.Contains(values, c[name])) {
			return false
		}
	}
	return true
}

func product(axes map[string][]string) []map[string]string {
	all := []map[string]string{{}}
	for _, name := range slices.Sorted(maps.Keys(axes)) {
		var next []map[string]string
		for _, c := range all {
			for _, v := range axes[name] {
				more := maps.Clone(c)
				more[name] = v
				next = append(next, more)
			}
		}
		all = next
	}
	return all
}

func texts(list []int) []string {
	var out []string
	for _, n := range list {
		out = append(out, fmt.Sprint(n))
	}
	return out
}

// Whatever include and exclude say, the cells are those that a slow and simple reading makes.
func TestCellsAreThoseOfASimpleReading(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func(of ...string) []string {
		random.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		return of[:1+random.IntN(len(of))]
	}
	values := map[string][]string{"engine": {"webllm", "llamacpp", "ollama"}, "input_length": {"8", "16"},
		"output_length": {"2", "3"}, "context": {"32", "64"},
		"dtype": {"f32", "f16"}, "threads": {"1", "2"}, "webllm_version": {"0.2.82", "0.2.86"}}
	names := slices.Sorted(maps.Keys(values))
	compared, refused := 0, 0
	for range 3000 {
		p := plan.Plan{Name: "p", Model: "m", MaxTokens: 4, Context: 64, Repetitions: 1, Warmup: plan.Warmup{Tokens: 1},
			Timeout: 1}
		for axis, name := range map[string]string{"engines": "engine", "input_lengths": "input_length",
			"output_lengths": "output_length",
			"contexts":       "context", "dtypes": "dtype", "thread_counts": "threads",
			"webllm_versions": "webllm_version"} {
			if list := some(slices.Clone(values[name])...); name == "engine" || name == "input_length" ||
				len(list) > 1 {
				if err := p.Set(axis, list...); err != nil {
					t.Fatal(err)
				}
			}
		}
		rules := func() (out []plan.Cells) {
			for range random.IntN(3) {
				c := plan.Cells{}
				for range 1 + random.IntN(3) {
					name := names[random.IntN(len(names))]
					c[name] = some(append(slices.Clone(values[name]), extra[name]...)...)
				}
				out = append(out, c)
			}
			return out
		}
		p.Exclude, p.Include = rules(), rules()
		if p.Validate() != nil {
			refused++
			continue
		}
		compared++
		var want, got []string
		for _, c := range naive(p) {
			want = append(want, fmt.Sprint(c["engine"], " ", c["input_length"], " ", c["output_length"], " ",
				c["context"], " ", c["dtype"], " ", c["threads"], " ", c["webllm_version"]))
		}
		ids := map[int]int{}
		for s := range p.Setups() {
			for _, shape := range s.Shapes {
				for _, e := range s.Plan.Engines {
					if shape.Asks(e) {
						got = append(got,
							fmt.Sprint(e, " ", shape.InputTokens, " ", shape.MaxTokens, " ", s.Plan.Context,
								" ", s.Plan.DType, " ", s.Plan.Threads, " ", s.Plan.WebLLMVersion))
					}
				}
				if n, known := ids[shape.PromptID]; known && n != shape.InputTokens {
					t.Errorf("prompt %d has %d tokens and %d", shape.PromptID, n, shape.InputTokens)
				}
				ids[shape.PromptID] = shape.InputTokens
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			text, _ := p.YAML()
			t.Fatalf("%s\nhas\n%s\nand by a simple reading\n%s", text, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
	if compared < 500 || refused == 0 {
		t.Errorf("%d plans were compared, %d refused: the test says little", compared, refused)
	}
}

// extra are values that an axis of the test's plans never has in a list.
var extra = map[string][]string{"input_length": {"24"}, "context": {"128"}, "engine": {"llamacpp-oneshot"}}
