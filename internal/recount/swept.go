package recount

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Which cells differ in one thing alone, the lines through their launches, and what is made of lines, worked out again.

// sweep is a report's.
type sweep struct {
	Axis    string
	Names   []string
	Cells   []int
	At      []float64
	Rates   []growthRate
	Verdict []string
}

// drawnAt is a point of a line to draw.
type drawnAt struct{ Tokens, MiB float64 }

type drawnLine struct {
	From, To drawnAt
	Theory   *drawnAt `json:"theory_to"`
}

type launchPoint struct {
	Cell, Attempt int
	drawnAt
}

// introduction is what an engine said of itself in an attempt.
type introduction struct {
	Name, Version string
	Parts, Policy map[string]string
}

func (i introduction) more() int { return len(i.Parts) + len(i.Policy) }

// alone has what cells are told apart by: what was asked for, what the engine said, and the machine.
type alone struct {
	specs    map[int]map[string]any
	said     map[int]introduction // by attempt
	devices  map[int]string
	computer string
}

func (e *evidence) alone() (*alone, error) {
	out := &alone{specs: map[int]map[string]any{}, said: map[int]introduction{}, devices: map[int]string{}}
	text, err := os.ReadFile(filepath.Join(e.dir, "environment.json"))
	if err != nil {
		return nil, err
	}
	var machine map[string]any
	if err := json.Unmarshal(text, &machine); err != nil {
		return nil, err
	}
	out.computer = fmt.Sprint(machine["cpu"], machine["cores"], machine["memory_bytes"])
	return out, eachLine(filepath.Join(e.dir, "journal.jsonl"), func(line []byte) error {
		var l struct {
			Attempt int
			Cell    map[string]any
			Event   *struct {
				Engine *introduction
				Device *struct{ Class, Name string }
			}
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		switch {
		case l.Cell != nil:
			out.specs[int(l.Cell["id"].(float64))] = l.Cell
		case l.Event != nil && l.Event.Engine != nil:
			if before, told := out.said[l.Attempt]; !told || l.Event.Engine.more() >= before.more() {
				out.said[l.Attempt] = *l.Event.Engine
			}
		case l.Event != nil && l.Event.Device != nil && out.devices[l.Attempt] == "":
			out.devices[l.Attempt] = l.Event.Device.Class + " " + l.Event.Device.Name
		}
		return nil
	})
}

// traits are what a cell is, by name; the axes among them, for which at has numbers. false: no launch of it counts.
func (a *alone) traits(e *evidence, cell *Cell) (traits map[string]string, at map[string]float64, ok bool) {
	counted := e.counted(cell.ID)
	if len(counted) == 0 {
		return nil, nil, false
	}
	spec := a.specs[cell.ID]
	text := func(of any) string { // absent, empty and false are one
		switch of {
		case nil, "", false:
			return ""
		}
		return fmt.Sprint(of)
	}
	var said introduction
	device := ""
	for _, b := range slices.Backward(counted) {
		if i, told := a.said[b.id]; told {
			said = i
		}
		if d := a.devices[b.id]; d != "" {
			device = d
		}
	}
	model, _ := spec["model"].(map[string]any)
	version := []string{"WebLLM", said.Parts["webllm"], said.Parts["webllm_origin"]}
	if version[1] == "" {
		version = []string{said.Name, said.Version}
	}
	life := text(spec["isolation"])
	if shared := text(spec["shared"]); shared != "" {
		life += " shared"
	} else if reused := text(spec["reused"]); reused != "" {
		life += " reused"
	}
	context, err := strconv.ParseFloat(said.Policy["context"], 64)
	if err != nil || context <= 0 {
		context, _ = model["context"].(float64)
	}
	most, _ := spec["max_tokens"].(float64)
	traffic, _ := spec["traffic"].(map[string]any)
	traits = map[string]string{"engine": text(spec["engine"]), "model": text(model["name"]) + text(model["sha256"]),
		"life":  life,
		"cache": text(spec["prompt_cache"]), "temperature": text(spec["temperature"]), "start": text(spec["start"]),
		"version": strings.Join(version, " "),
		"library": said.Parts["model_library"], "weights": said.Policy["weights_dtype"],
		"threads": said.Policy["threads"],
		"worker":  fmt.Sprint(said.Policy["thread"] == "worker"), "browser": said.Parts["browser"], "device": device,
		"computer": a.computer,
		"context":  fmt.Sprint(context), "input_len": text(spec["prompt"]), "output_len": fmt.Sprint(most),
		"kv_cache_dtype": text(spec["kv_dtype"]) + " " + said.Policy["kv_dtype"], "traffic": fmt.Sprint(traffic)}
	at = map[string]float64{"output_len": most, "context": context}
	if f := cell.Figures["prompt_tokens"]; len(f.Values) > 0 {
		at["input_len"] = f.Median
	}
	for axis, loop := range map[string]string{"concurrency": "closed", "batch_size": "batch"} {
		rest := map[string]any{"loop": loop}
		if at[axis] = 1; traffic != nil {
			at[axis] = 0
			for name, v := range traffic {
				if rest[name] = v; name == "concurrency" || name == "requests" || name == "seed" {
					delete(rest, name)
				}
			}
			if traffic["loop"] == loop {
				at[axis], _ = traffic["concurrency"].(float64)
			}
		}
		traits["traffic but "+axis] = fmt.Sprint(rest)
	}
	return traits, at, true
}

// axesOver are the axes of sweeps, in their order.
func axesOver() []string {
	return []string{"input_len", "context", "output_len", "concurrency", "batch_size", "kv_cache_dtype"}
}

// found are the sweeps that there are among a report's cells.
func (c *check) found() []sweep {
	type cell struct {
		traits map[string]string
		at     map[string]float64
		ok     bool
	}
	var cells []cell
	for i, mine := range c.cells {
		e := c.evidence[c.res.Cells[i].Run]
		if c.foreign[c.res.Cells[i].Run] != nil {
			cells = append(cells, cell{}) // nobody knows what was asked
			continue
		}
		a := kept(c.Work, fmt.Sprint("alone ", c.res.Cells[i].Run), func() *alone {
			a, err := e.alone()
			if err != nil {
				c.Fatal(err)
			}
			return a
		})
		var one cell
		one.traits, one.at, one.ok = a.traits(e, mine)
		cells = append(cells, one)
	}
	var out []sweep
	for _, axis := range axesOver() {
		words := axis == "kv_cache_dtype"
		done := map[int]bool{}
		for i, first := range cells {
			member := func(x cell) bool {
				if !x.ok || !words && x.at[axis] <= 0 {
					return false
				}
				for name, v := range first.traits {
					switch many := axis == "concurrency" || axis == "batch_size"; {
					case name == axis, many && name == "traffic", strings.HasPrefix(name, "traffic but ") &&
						(!many || name != "traffic but "+axis):
					case x.traits[name] != v:
						return false
					}
				}
				return true
			}
			s := sweep{Axis: axis}
			if done[i] {
				continue
			}
			for k := range cells {
				if k >= i && member(cells[k]) {
					s.Cells, done[k] = append(s.Cells, k), true
				}
			}
			place := func(k int) float64 { return cells[k].at[axis] }
			if words {
				word := func(k int) string {
					asked, is, _ := strings.Cut(cells[k].traits[axis], " ")
					return cmp.Or(asked, is)
				}
				for _, k := range s.Cells {
					if !slices.Contains(s.Names, word(k)) {
						s.Names = append(s.Names, word(k))
					}
				}
				slices.Sort(s.Names)
				place = func(k int) float64 { return float64(slices.Index(s.Names, word(k))) }
			}
			slices.SortStableFunc(s.Cells, func(a, b int) int { return cmp.Compare(place(a), place(b)) })
			for _, k := range s.Cells {
				s.At = append(s.At, place(k))
			}
			if len(s.At) > 1 && s.At[0] < s.At[len(s.At)-1] {
				out = append(out, s)
			}
		}
	}
	return out
}

// sweeps hold what the report sees together against what there is, and the lines through it.
func (c *check) sweeps(said []sweep) {
	found := kept(c.Work, fmt.Sprint("sweeps of ", len(c.cells), c.cell(0)), c.found)
	words := func(all []sweep) []string {
		var out []string
		for _, s := range all {
			out = append(out, fmt.Sprint(s.Axis, s.Names, " of cells ", s.Cells, " at ", s.At))
		}
		return out
	}
	c.compared++
	if got, want := words(said), words(found); !slices.Equal(got, want) {
		c.Errorf("the report's sweeps are %q, and found again %q", got, want)
		return
	}
	for i, s := range said {
		if s.Axis == "concurrency" || s.Axis == "batch_size" || s.Axis == "kv_cache_dtype" {
			c.same("lines over "+s.Axis, float64(len(s.Rates)), 0)
			continue
		}
		c.lines(i, s)
	}
}

// lines hold those of a sweep through launches.
func (c *check) lines(number int, s sweep) {
	first := c.cells[s.Cells[0]]
	theory := 0.0
	if first.load == nil {
		theory = c.evidence[c.res.Cells[s.Cells[0]].Run].theory(first.ID)
	}
	names := []string{"kv_reserved", "webgpu_ledger", "settled_pss", "peak_pss", "peak_rss_sum"}
	roles := map[string]bool{}
	for key := range c.inside(s.Cells[0]).highest {
		roles[key[0]] = true
	}
	if len(roles) > 1 {
		for _, role := range []string{"renderer", "gpu-process"} {
			if roles[role] {
				names = append(names, "peak:"+role)
			}
		}
	}
	flat := false
	if at := slices.IndexFunc(s.Rates, func(r growthRate) bool { return r.Name == "kv_reserved" }); at >= 0 &&
		s.Axis == "input_len" {
		flat = s.Rates[at].Median != nil && *s.Rates[at].Median == 0 // which is held below
	}
	left := map[string]growthRate{}
	for _, r := range s.Rates {
		left[r.Name] = r
	}
	for _, name := range names {
		what := fmt.Sprintf("%s over %s", name, s.Axis)
		points, launches := c.swept(number, s, name)
		r, told := left[name]
		delete(left, name)
		if c.present(what, told, len(slopesOf(points)) > 0); !told || len(slopesOf(points)) == 0 {
			continue
		}
		c.line(what, r, points, theory)
		if c.same(what+", points", float64(len(r.Points)), float64(len(launches))); len(r.Points) == len(launches) {
			for i, p := range r.Points {
				if c.compared++; p != launches[i] {
					c.Errorf("%s: point %d is %+v in the report, and %+v worked out again", what, i+1, p, launches[i])
				}
			}
		}
		slope := middle(slopesOf(points)) / mib
		var off []float64
		for _, p := range points {
			off = append(off, p.y-slope*p.x)
		}
		from, to := s.At[0], s.At[len(s.At)-1]
		c.fit(what, r.Fit, true, from, middle(off)+slope*from, to, slope*mib, theory)
		verdict := r.called(theory, flat)
		if name == "kv_reserved" && flat {
			verdict = "flat, because what is reserved goes by the context and not by the prompt"
		}
		c.verdict(what, r, verdict, s.Verdict,
			slices.IndexFunc(s.Rates, func(r growthRate) bool { return r.Name == name }))
	}
	for name := range left {
		c.Errorf("%s over %s: a line that was not worked out again", name, s.Axis)
	}
	c.same("verdicts over "+s.Axis, float64(len(s.Verdict)), float64(len(s.Rates)))
}

// inside is what was worked out of a cell's memory.
func (c *check) inside(i int) *memoryCellAgain {
	f := c.memory[c.res.Cells[i].Run]
	return kept(c.Work, "memory"+c.cell(i), func() *memoryCellAgain { return f.all(c.cells[i]) })
}

// swept are a quantity's values in all launches of a sweep.
func (c *check) swept(number int, s sweep, name string) (points []point, launches []launchPoint) {
	for n, i := range s.Cells {
		f := c.cells[i].Figures[name]
		if role, peak := strings.CutPrefix(name, "peak:"); peak {
			f = c.inside(i).highest[[2]string{role, "measure"}]
		} else if name == "settled_pss" {
			f = c.settled(i)
		} else if name == "kv_reserved" || name == "webgpu_ledger" {
			f = kept(c.Work, "where measure "+name+c.cell(i),
				func() Figure { return c.inside(i).where("measure", name) })
		}
		for k, v := range f.Values {
			points = append(points, point{s.At[n], v})
			launches = append(launches, launchPoint{i, f.launches[k], drawnAt{s.At[n], v}})
		}
	}
	return points, launches
}

// settled is the total PSS when the measurement had ended, less that before the load.
func (c *check) settled(i int) Figure {
	if len(c.inside(i).highest) == 0 {
		return Figure{} // nothing looked at the processes' peaks, and a report has no list of where memory is
	}
	f := kept(c.Work, "where measure total_pss"+c.cell(i),
		func() Figure { return c.inside(i).where("measure", "total_pss") })
	f.Values = slices.Clone(f.Values)
	for k, id := range f.launches {
		if b := c.cells[i].Figures["baseline_pss"].of(id); !math.IsNaN(b) {
			f.Values[k] -= b
		}
	}
	return f
}

// fit holds a line to draw.
func (c *check) fit(what string, got *drawnLine, want bool, from, mibs, to, rate, theory float64) {
	if c.present(what+", a line to draw", got != nil, want); got == nil || !want {
		return
	}
	c.about(what+", the line's begin", got.From.Tokens, from, 0.0006)
	c.about(what+", the line's end", got.To.Tokens, to, 0.0006)
	c.about(what+", where the line begins", got.From.MiB, mibs, last)
	c.about(what+", where the line ends", got.To.MiB, mibs+rate*(to-from)/mib, 2*last)
	if c.present(what+", theory's line", got.Theory != nil, theory > 0); got.Theory != nil {
		c.about(what+", where theory's line ends", got.Theory.MiB, mibs+theory*(to-from)/mib, 2*last)
		c.about(what+", the end of theory's line", got.Theory.Tokens, to, 0.0006)
	}
}

// called is what a rate comes to.
func (r growthRate) called(theory float64, flat bool) string {
	cache := r.Name == "kv_reserved"
	switch {
	case theory > 0 && (cache || r.Name == "webgpu_ledger") && math.Abs(*r.Median-theory) < theory/200:
		return "as calculated"
	case r.Interval == nil:
		return fmt.Sprintf("too few runs (%d) to tell growth from noise", r.N)
	case r.Interval.Hi < 0:
		return "it shrinks while tokens come"
	case r.Interval.Lo <= 0 && flat && !cache:
		return "no growth shows, as is to be expected: the KV cache is all reserved at the load"
	case r.Interval.Lo <= 0 && theory > 0 && theory <= r.Interval.Hi:
		return fmt.Sprintf("no growth shows, but the calculated %s is not excluded", bytesWords(theory))
	case r.Interval.Lo <= 0:
		return "no growth shows"
	case theory <= 0:
		return "it grows; what a token takes by arithmetic is not known"
	case theory < r.Interval.Lo:
		return "more than the calculated " + bytesWords(theory)
	case theory > r.Interval.Hi:
		return "less than the calculated " + bytesWords(theory)
	}
	return fmt.Sprintf("it grows; the calculated %s is within the interval", bytesWords(theory))
}

func bytesWords(v float64) string {
	if v == math.Round(v) || math.Abs(v) >= 10 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// verdict holds a rate's, and its line among those of all.
func (c *check) verdict(what string, r growthRate, want string, lines []string, k int) {
	c.compared++
	if r.Verdict != want {
		c.Errorf("%s: the verdict is %q in the report, and %q worked out again", what, r.Verdict, want)
	}
	if tail := fmt.Sprintf(": %s bytes/token: %s", bytesWords(*r.Median), want); k >= len(lines) ||
		!strings.HasSuffix(lines[k], tail) {
		c.Errorf("%s: the verdicts are %q, and number %d should end with %q", what, lines, k+1, tail)
	}
}
