package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/parity"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
	"llmparity/internal/warning"
)

// remarks gathers the remarks of records and figures: warnings, the most serious first, and notes.
func (r *Result) remarks(runs []*record.Run) (warnings, notes []evidence.Warning) {
	var all []evidence.Warning
	for i, run := range runs {
		where := "run"
		if len(runs) > 1 {
			where = "run " + r.RunName(i)
		}
		add := func(w record.Warning) { all = append(all, evidence.Warning{Warning: w, Where: where, Run: i + 1}) }
		for _, w := range run.Warnings {
			if w.Code != memoryReclaimed || !brief(run) {
				add(w)
			}
		}
		if run.Running > 0 {
			add(explain.LaunchFailed.With(fmt.Sprintf("the run is still running (process %d)", run.Running)))
		} else if run.Status == record.Interrupted {
			add(explain.LaunchFailed.With(`the run was interrupted; "llmparity run --resume" measures the rest`))
		} else if run.Status != record.OK {
			add(explain.LaunchFailed.With("the run's status is " + string(run.Status)))
		}
		if words := explain.Busy(run); words != "" {
			add(explain.BusyMachine.With(words))
		}
	}
	for _, p := range r.Parity {
		if a, b := r.Cells[p.A], r.Cells[p.B]; p.Scores.Differs() && !a.Scores.Differs() && !b.Scores.Differs() {
			all = append(all, evidence.Warning{Where: a.Label + "; " + b.Label,
				Warning: explain.ScoresDiffer.With(a.Label, b.Label, p.Scores.Words())})
		}
	}
	for i, c := range r.Cells {
		own := c.launchRemarks()
		for _, w := range slices.Concat(c.ownRemarks(), c.footprint.Warnings()) {
			own = append(own, evidence.Warning{Warning: w, Where: c.Label})
		}
		for _, w := range own {
			w.Cell = i + 1
			all = append(all, w)
		}
	}
	warnings, notes = []evidence.Warning{}, []evidence.Warning{}
	for _, w := range all {
		row, ok := warning.Of(w.Code)
		if !ok {
			notes = append(notes, w)
			continue
		}
		if w.Code != row.Code {
			w.Code, w.RecordCode = row.Code, w.Code
		}
		warnings = append(warnings, w)
	}
	slices.SortStableFunc(warnings,
		func(a, b evidence.Warning) int { return warning.Rank(a.Code) - warning.Rank(b.Code) })
	return warnings, notes
}

// memoryReclaimed is the code in records of a kernel that reclaims idle memory.
const memoryReclaimed = "memory-reclaimed"

// brief reports whether every launch ended before the kernel takes memory for idle, so that it reclaimed none.
func brief(run *record.Run) bool {
	if run.Environment.Memory == nil {
		return false
	}
	idle := math.Inf(1)
	for _, r := range run.Environment.Memory.Reclaimers {
		if !r.Some {
			idle = min(idle, r.IdleS) // 0: unknown
		}
	}
	from := map[int]int64{}
	for _, a := range run.Attempts {
		launch := a.Launch().ID
		if _, has := from[launch]; !has {
			from[launch] = a.BeginNS
		}
		if float64(a.EndNS-from[launch])/1e9 >= idle {
			return false
		}
	}
	return true
}

// About has the warnings of a cell, of its launches, and of its run.
func (r *Result) About(c *Cell) []evidence.Warning {
	cell := 1 + slices.Index(r.Cells, c)
	out := []evidence.Warning{}
	for _, w := range r.Warnings {
		if w.Run == c.Run+1 || w.Cell == cell {
			out = append(out, w)
		}
	}
	return out
}

// OnceEach merges equal remarks and names all cells that they are about: thirty equal lines would hide the others.
func (r *Result) OnceEach(all []evidence.Warning) []evidence.Warning {
	var out []evidence.Warning
	about := map[record.Warning][]string{}
	for _, w := range all {
		if about[w.Warning] == nil {
			out = append(out, w)
		}
		about[w.Warning] = explain.AppendNew(about[w.Warning], w.Where)
	}
	for i := range out {
		out[i].Where = r.EveryCell(about[out[i].Warning])
	}
	return out
}

// Remarks are the remarks of one code, in one line.
type Remarks struct {
	evidence.Warning
	Each []evidence.Warning // one of each text; two if the line does not have it all
}

// ByCode merges remarks of one code: what would be a line a cell says of how many figures of which cells it is.
func (r *Result) ByCode(all []evidence.Warning) []Remarks {
	var out []Remarks
	for _, w := range r.OnceEach(all) {
		at := slices.IndexFunc(out, func(o Remarks) bool { return o.Code == w.Code })
		if at < 0 {
			at, out = len(out), append(out, Remarks{Warning: w})
		}
		out[at].Each = append(out[at].Each, w)
	}
	for i := range out {
		w := &out[i]
		n, figures, cells := r.figuresWith(w.Code)
		switch {
		case n > 1:
			w.Where = r.EveryCell(cells)
			if len(cells) > 2 {
				w.Where = fmt.Sprintf("%d cells", len(cells))
			}
			w.Text = fmt.Sprintf(explain.FiguresOfCells, n, cmp.Or(explain.FiguresThat[w.Code], "are in doubt"),
				explain.Some(figures, 4))
		case w.Code == warning.BusyMachine && len(r.Runs) > 1: // once is enough
			w.Where = "these runs"
		case len(w.Each) > 1 && w.Each[0].Where == w.Each[1].Where && w.Code == warning.BusyMachine: // once is enough
		case len(w.Each) > 1 && w.Each[0].Where == w.Each[1].Where:
			w.Text = fmt.Sprintf(explain.AndOthers, w.Text, len(w.Each)-1)
		case len(w.Each) > 1:
			w.Where = fmt.Sprintf(explain.AndOthers, w.Where, len(w.Each)-1)
		}
	}
	return out
}

// figuresWith counts the figures that a code warns of, and names them and their cells. That the machine was busy is a
// warning of runs.
func (r *Result) figuresWith(code string) (n int, figures, cells []string) {
	for _, c := range r.Cells {
		for _, f := range c.Figures {
			has := func(w record.Warning) bool { return w.Code == code && code != warning.BusyMachine }
			if c.Refused == "" && slices.ContainsFunc(f.Warnings, has) {
				n++
				figures, cells = explain.AppendNew(figures, f.Title), explain.AppendNew(cells, c.Label)
			}
		}
	}
	return n, figures, cells
}

// EveryCell joins names of cells, or says "every cell".
func (r *Result) EveryCell(names []string) string {
	if len(names) > 2 && len(names) == len(r.Cells) &&
		!slices.ContainsFunc(r.Cells, func(c *Cell) bool { return !slices.Contains(names, c.Label) }) {
		return "every cell"
	}
	return strings.Join(names, "; ")
}

// launchRemarks are those of a cell's launches. Equal remarks of several launches are merged.
func (c *Cell) launchRemarks() []evidence.Warning {
	var by evidence.Groups[record.Warning, string]
	for _, a := range c.all {
		name := fmt.Sprint(a.Repetition)
		if a.Warmup {
			name = "warm-up"
		}
		for _, w := range a.Warnings {
			if left := c.footprint.LeftOut(); w.Code == record.ProgramShared && left > 0 {
				w.Text += fmt.Sprintf("; up to %s of the peak is left out", explain.Share(left))
			}
			evidence.AddNew(&by, w, name)
		}
	}
	var out []evidence.Warning
	for w, launches := range by.All() {
		what := explain.Plural(len(launches), c.Repeated(), c.Several())
		out = append(out, evidence.Warning{Warning: w,
			Where: fmt.Sprintf("%s, %s %s", c.Label, what, strings.Join(launches, ", "))})
	}
	return out
}

// ownRemarks follow from a cell's figures and settings.
func (c *Cell) ownRemarks() []record.Warning {
	var out []record.Warning
	add := func(when bool, r explain.Remark, args ...any) {
		if when {
			out = append(out, r.With(args...))
		}
	}
	if c.Refused != "" {
		return nil
	}
	n := c.Launches.Counted
	if c.Scores.Differs() {
		add(true, explain.ScoresDiffer, c.Label, c.Scores.With, c.Scores.Words())
	}
	add(n > 0 && n < stats.MinRuns, explain.TooFew, n, stats.MinRuns)
	for _, f := range c.Failures {
		text := fmt.Sprintf("%s %d %s", c.Repeated(), f.Repetition, f.Status)
		if f.Class != "" {
			text += " (" + string(f.Class) + ")"
		}
		if f.Error != "" {
			text += ": " + f.Error
		}
		add(true, explain.LaunchFailed, text)
	}
	busy := c.Figure(figure.SamplerBusy)
	add(busy.Known() && busy.Center() > 2, explain.SamplerCost, explain.Short(busy.Center()))
	if c.spins != "" {
		out = append(out, record.Warning{Code: explain.Spinning.Code, Text: c.spins})
	}
	add(c.footprint.Others > 0, explain.Others, explain.Short(c.footprint.Others))
	if c.Stop != nil {
		unreached := c.Stop.Unreached(figure.Title(c.Stop.Figure))
		add(unreached != "", explain.Unreached, unreached)
	}
	if opened := c.Launches.Opened; opened > 0 {
		add(true, explain.SharedLaunch, n, fmt.Sprint(opened, explain.Plural(opened, " launch", " launches")))
	}
	if c.Load != nil {
		for _, caveat := range c.Load.Caveats {
			add(true, explain.OneAtATime, caveat)
		}
	}
	add(c.Spec.StopsAtEnd, explain.StopsAtEnd)
	mute := parity.Mute(c.counted)
	add(mute, explain.NoOutput)
	add(c.Spec.NoTokenIDs && !mute, explain.NoIDs)
	switch cached := c.Figure(figure.Cached); {
	case cached.Known() && cached.Center() > 0:
		add(true, explain.CachedPrompt, cached.Count(), c.Figure(figure.Prompt).Count())
	case c.unknownPrefill:
		add(true, explain.UnknownCache)
	default:
		add(c.Spec.PromptCache == record.CacheOn && n > 0, explain.CacheOn)
	}
	add(c.Spec.Pieces, explain.Pieces)
	add(c.inconstant != "", explain.Differ, c.inconstant)
	add(c.Self.Known && !c.Self.Identical, explain.Random, c.Self.Verdict)
	return append(out, c.figureRemarks()...)
}

// figureRemarks merges the remarks of figures by code.
func (c *Cell) figureRemarks() []record.Warning {
	const most = 4
	var by evidence.Groups[string, string]
	for _, f := range c.Figures {
		for _, w := range f.Warnings {
			if w.Code != warning.BusyMachine { // the run has it
				by.Add(w.Code, f.Title+between(w.Text)+w.Text)
			}
		}
	}
	var out []record.Warning
	for code, texts := range by.All() {
		text := strings.Join(texts[:min(most, len(texts))], "; ")
		if more := len(texts) - most; more > 0 {
			text += fmt.Sprintf("; and %d more", more)
		}
		out = append(out, record.Warning{Code: code, Text: text})
	}
	return out
}

// between separates a figure from its remark, which begins with a verb or a count.
func between(text string) string {
	if text != "" && text[0] >= '0' && text[0] <= '9' {
		return ": "
	}
	return " "
}
