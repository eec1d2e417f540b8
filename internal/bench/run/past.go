package run

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/score"
	"llmparity/internal/bench/until"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/differ"
)

// past is what a resumed run has made before; empty for a new run.
type past struct {
	*record.State
	changed  []record.Difference
	reported map[string]bool // changed engines already warned about
}

// refusal is why a run can't be resumed: it ends the run and is not recorded.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// scan reads the run to resume.
func (r *runner) scan() (*past, error) {
	s, err := record.Scan(r.Resume)
	if err != nil {
		return nil, err
	}
	p := &past{State: s, reported: map[string]bool{}}
	r.Optional = func(engine string) bool { return slices.Contains(s.Meta.DefaultEngines, engine) }
	if err := p.samePlan(r); err != nil {
		return nil, err
	}
	for _, d := range differ.Tools(s.Meta.Tool, r.Tool) {
		if !r.AllowChanged {
			return nil, changed("the run in %s was started by another llmparity (%s)", s.Dir, d)
		}
		p.changed = append(p.changed, d.Difference)
	}
	return p, nil
}

func changed(format string, args ...any) error {
	return &refusal{fault.New(fault.Usage,
		"use the original, or --allow-changed, which adds a warning", format, args...)}
}

// samePlan refuses to resume with another plan, or if plan.yaml was changed. The order_seed of the run replaces a
// missing one.
func (p *past) samePlan(r *runner) error {
	if p.Meta.Plan != sumOf(p.Plan) {
		return fault.New(fault.Usage, "restore it, or start a new run with it",
			"plan.yaml in %s was changed since the run started", p.Dir)
	}
	written := p.Plan
	was, err := r.Plan.Like(p.Plan, "the run's plan")
	if err == nil {
		written, err = was.YAML() // another version may order fields differently
	}
	if r.Plan.Order == plan.Shuffled && r.Plan.OrderSeed == 0 {
		if err != nil {
			return err
		}
		r.Plan.OrderSeed = was.OrderSeed
	}
	text, err := r.Plan.YAML()
	if err != nil {
		return err
	}
	if bytes.Equal(text, written) {
		return nil
	}
	return fault.New(fault.Usage, "resume it without a plan and flags, or start a new run",
		"the plan differs from that of the run in %s", p.Dir)
}

// reopen resumes the run.
func (r *runner) reopen(env record.Environment) error {
	w, s, err := record.Reopen(r.Resume)
	if err != nil {
		return err
	}
	r.w, r.past.State = w, s
	changed := r.past.changed
	for _, d := range differ.Machines(s.Environment, env) {
		if d.Known && d.Figures {
			changed = append(changed, d.Difference)
		}
	}
	w.Resumed(record.Resumed{Tool: r.Tool, Changed: changed})
	return nil
}

// sameModel refuses to resume a setup whose model was replaced. Cells keep their prompts, because another llmparity,
// which --allow-changed allows, may generate others.
func (p *past) sameModel(s *current) error {
	for _, c := range s.cells {
		was, ok := p.Cell(c.ID)
		if !ok || was.Isolation == "" { // only the plan was known
			continue
		}
		if was.Model.SHA256 != c.Model.SHA256 || was.Model.Name != c.Model.Name || was.Engine != c.Engine {
			return &refusal{fault.New(fault.Usage, "restore the model, or start a new run",
				"the model of the run in %s changed: it is %s %.12s, was %s %.12s", p.Dir, c.Model.Name, c.Model.SHA256,
				was.Model.Name, was.Model.SHA256)}
		}
		c.Prompt, c.Traffic = was.Prompt, was.Traffic
	}
	return nil
}

// made returns a cell's number of warm-up launches, its repetitions, and whether it was given up. A failed warm-up
// counts only if it was repeated.
func (p *past) made(r *runner, cell int) (warmups int, repetitions map[int]bool, gaveUp bool) {
	repetitions = map[int]bool{}
	again, failedStarts := false, 0 // the last attempt was a failed warm-up; consecutive launches that did not start
	for _, c := range p.Commits(cell) {
		if c.Scoring != nil {
			continue
		}
		counts := c.Status == record.OK || // it need not be repeated
			(c.Status == record.Failed || c.Status == record.Refused) && !r.RetryFailed
		switch {
		case !c.Warmup:
			if again { // it was not to be repeated
				warmups++
			}
			again, repetitions[c.Repetition] = false, counts
		case !counts:
		case c.Status == record.OK || again || permanent(c.Class) || c.Class == record.BadOutput:
			again = false
			warmups++
		default:
			again = true
		}
		if failedStarts++; c.Class != record.Start {
			failedStarts = 0
		}
		if permanent(c.Class) || failedStarts >= mostFailedStarts {
			gaveUp = counts
		}
	}
	return warmups, repetitions, gaveUp
}

// permanent reports whether the next launch would fail in the same way.
func permanent(class record.Class) bool {
	return slices.Contains([]record.Class{record.SetUp, record.BadModel, record.Fallback}, class)
}

// failed reports whether a cell was given up and is not tried again.
func (p *past) failed(r *runner, cell int) bool {
	_, _, gaveUp := p.made(r, cell)
	return gaveUp
}

// mark marks the turns that were made before, and the cells that get no more.
func (p *past) mark(r *runner, cells []*series, order []turn) {
	warmups, repetitions := map[*series]int{}, map[*series]map[int]bool{}
	for _, c := range cells {
		var gaveUp bool
		warmups[c], repetitions[c], gaveUp = p.made(r, c.ID)
		if gaveUp && c.gaveUp == nil {
			c.gaveUp, c.recorded = errGiven, true
		}
		// One that ended without the interval it was to reach has its repetitions: failed ones may be made again.
		if stop, stopped := p.Stops[c.ID]; stopped && (stop.Narrow || stop.Looks == 0) {
			c.enough = until.Over()
		}
	}
	for i := range order {
		t := &order[i]
		if !t.warmup {
			t.made = repetitions[t.series][t.repetition]
			continue
		}
		t.made = warmups[t.series] > 0
		warmups[t.series]--
	}
}

// errGiven stands for a reason that is in the record.
var errGiven = errors.New("given up before the run was resumed")

// restore restores the results of earlier attempts that later decisions depend on.
func (p *past) restore(s *current, c *series) {
	scores := s.textOf != "" && (!s.Plan.ScoresNothing() || s.Plan.Checks())
	if !scores && c.enough == nil {
		return
	}
	for _, was := range p.Commits(c.ID) {
		if was.Counted() {
			c.ran = true
			c.restore(was)
		}
	}
}

func (c *series) restore(a *record.Attempt) {
	requests := a.Measured()
	for _, q := range requests {
		if c.output == nil {
			c.output = score.OutputOf(a.ID, q)
		}
	}
	if c.enough != nil {
		c.enough.Restore(requests)
	}
}

// over reports whether a setup is complete.
func (p *past) over(r *runner, planned *plan.Setup) bool {
	if p.Dir == "" {
		return false
	}
	cells := seriesOf(planned)
	order := turns(planned, cells)
	p.mark(r, cells, order)
	return !slices.ContainsFunc(order, func(t turn) bool { return !t.over() })
}

// failure is the error of a resumed run that itself went well but has earlier failures, which are not repeated.
func (p *past) failure(r *runner) error {
	if r.RetryFailed {
		return nil
	}
	lost, refused := 0, error(nil)
	for _, cell := range p.Cells {
		last := map[int]record.Status{}
		for _, c := range p.Commits(cell.ID) {
			if c.Scoring == nil {
				last[c.Repetition] = c.Status
			}
			if c.Status == record.Refused && !r.optional(cell.Engine) {
				refused = fault.First(refused, fault.New(cmp.Or(c.Fault, fault.NotSupported),
					"use --retry-failed to try again", "%s: %s", cell.Engine, c.Error))
			}
		}
		for _, status := range last {
			if status == record.Failed {
				lost++
			}
		}
	}
	if lost == 0 {
		return refused
	}
	return fault.First(refused, fault.New(fault.Run, "use --retry-failed to repeat them",
		"failed attempts before the run was resumed: %d", lost))
}

// unscored reports whether the run may have been interrupted between a setup's last launch and its scoring. end is the
// first cell after those that the setup alternates with.
func (p *past) unscored(planned *plan.Setup, end int) bool {
	if p.Status != record.Interrupted ||
		planned.Plan.ScoresNothing() && planned.Plan.Quality == "" && !planned.Plan.Checks() {
		return false
	}
	for _, cell := range p.Cells {
		if cell.ID >= end && len(p.Commits(cell.ID)) > 0 {
			return false
		}
	}
	return true
}

// whole reports whether the run is complete.
func (p *past) whole(r *runner) bool {
	incomplete := func(s *plan.Setup) bool { return !p.over(r, s) }
	return p.Status != record.Interrupted && !slices.ContainsFunc(r.Setups, incomplete)
}

// sameEngine refuses an engine or browser that changed; with AllowChanged it warns.
func (p *past) sameEngine(r *runner, s *current, name string, is record.EngineInfo) error {
	was, known := p.Engine(s.ID, name)
	if !known || p.reported[fmt.Sprint(s.ID, " ", name)] {
		return nil
	}
	for _, d := range differ.Engines(was, is) { // also those that are not known: it is no longer as it was
		if !r.AllowChanged {
			return changed("%s changed since the run in %s was started (%s)", name, p.Dir, d)
		}
		p.reported[fmt.Sprint(s.ID, " ", name)] = true
		r.w.Warn(record.Warnf("resumed-elsewhere", "%s changed before the run was resumed: %s", name, d))
	}
	return nil
}
