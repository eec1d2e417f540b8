package plan

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"llmparity/internal/record"
)

// What is beyond these is a slip of somebody's.
const (
	mostTokens      = 10_000_000
	mostRequests    = 1_000_000
	mostRepetitions = 100_000
)

// nameForm is what a plan may be called: its name becomes a folder's.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Validate says which field is wrong and what would be right. An error begins with the field.
func (p Plan) Validate() error {
	checks := []func() error{p.validateScalars, p.validateModels, func() error { return p.Traffic.validate(p) },
		p.validatePrompts, p.validateSchedule, p.validateAxes, p.validateSections,
		p.validateLoad, p.Gate.Validate, p.validateReference, p.validateMatrix}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p Plan) validateScalars() error {
	switch {
	case p.Name == "":
		return errors.New("name: it is missing: it becomes the name of the run's folder")
	case !nameForm.MatchString(p.Name):
		return fmt.Errorf("name: %q becomes a folder's name: up to 100 letters, digits, dots, dashes and underscores", p.Name)
	case p.Temperature != 0:
		return fmt.Errorf("temperature: %g, only 0 (greedy) can be compared token by token so far", p.Temperature)
	case badContext(p.Context):
		return fmt.Errorf("context: %d, at least 2 is needed, or 0 for the model's own", p.Context)
	}
	for _, f := range p.Fields() {
		if err := f.check(); err != nil {
			return err
		}
	}
	switch {
	case p.CellTimeout > 0 && p.CellTimeout < p.Timeout:
		return fmt.Errorf("cell_timeout: %s is less than the timeout of one launch, %s", time.Duration(p.CellTimeout),
			time.Duration(p.Timeout))
	case p.Watchdog != 0 && time.Duration(p.Watchdog) < time.Second:
		return fmt.Errorf("watchdog: %s, at least 1s is needed", time.Duration(p.Watchdog))
	}
	return nil
}

func badContext(n int) bool { return n < 2 && n != 0 && n != Unsaid || n > mostTokens }

// validateModels looks at which models run in which engines.
func (p Plan) validateModels() error {
	switch {
	case len(p.Models) > 0 && p.Model != "":
		return errors.New("models: model says it too; leave one out")
	case len(p.Models) == 0 && p.Model == "":
		return errors.New("model: none is named; `tiny` needs no file")
	}
	seen := map[string]bool{}
	for _, g := range p.scopes() {
		at := strings.TrimSuffix(g.path, ".")
		switch {
		case at != "" && g.Model == "":
			return fmt.Errorf("%s.model: none is named; `tiny` needs no file", at)
		case len(g.Engines)+len(p.Engines) == 0 && (at != "" || len(p.Models) == 0):
			return errors.New("engines: none is named")
		case g.plain() && seen[g.Model]:
			return fmt.Errorf("%s: %s is named twice", at, g.Model)
		}
		seen[g.Model] = seen[g.Model] || g.plain()
		for i, e := range g.Engines {
			if e == "" {
				return fmt.Errorf("%sengines[%d]: it has no name", g.path, i)
			}
			if slices.Contains(g.Engines[:i], e) {
				return fmt.Errorf("%sengines: %s is named twice", g.path, e)
			}
		}
		if err := g.Deployment.validate(g.path); err != nil {
			return err
		}
	}
	return nil
}

// validate looks at what other tools' plans say.
func (d Deployment) validate(at string) error {
	v := reflect.ValueOf(d)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if f := v.Field(i); f.CanInt() && f.Int() < 0 || f.CanFloat() && f.Float() < 0 {
			return fmt.Errorf("%s%s: %v is negative", at, name, f)
		}
	}
	if d.GPUMemory > 1 {
		return fmt.Errorf("%sgpu_memory_utilization: %g, a part of all is needed, as in 0.9", at, d.GPUMemory)
	}
	return nil
}

// validatePrompts looks at what is asked.
func (p Plan) validatePrompts() error {
	for i, text := range p.Prompts {
		if text == "" {
			return fmt.Errorf("prompts[%d]: it is empty", i)
		}
	}
	for i, s := range p.Sources {
		if err := s.validate(); err != nil {
			return fmt.Errorf("prompts[%d].%w", len(p.Prompts)+i, err)
		}
	}
	given := len(p.Prompts)+len(p.Sources) > 0
	mixed := p.Traffic.complete()
	if given && len(p.InputLengths) > 0 {
		return errors.New("input_lengths: prompts say what is asked; leave one out")
	}
	converses := func(s Source) bool { return s.Conversation != nil }
	if p.Traffic != nil && p.Traffic.Turns > 0 && slices.ContainsFunc(p.Sources, converses) {
		return errors.New("traffic.turns: a conversation among prompts has its own; leave it out")
	}
	for i, g := range p.Models {
		if !given && !mixed && len(p.InputLengths)+len(g.InputLengths) == 0 {
			return fmt.Errorf("models[%d].input_lengths: there are none, and no prompts either; give one of them", i)
		}
	}
	if !given && !mixed && len(p.InputLengths) == 0 && len(p.Models) == 0 {
		return errors.New("prompts: there is none; give some, or input_lengths")
	}
	return p.validateOutputs()
}

// validateOutputs looks at how much is to be generated.
func (p Plan) validateOutputs() error {
	alone := len(p.Prompts)+len(p.Sources) > 0 ||
		slices.ContainsFunc(p.scopes(), func(s scope) bool { return len(s.InputLengths) > 0 })
	said := !alone && p.Traffic.complete() &&
		!slices.ContainsFunc(p.Traffic.Mix, func(k Kind) bool { return k.MaxTokens == 0 })
	if p.MaxTokens > mostTokens {
		return fmt.Errorf("max_tokens: %d, at most %d are possible", p.MaxTokens, mostTokens)
	}
	if len(p.OutputLengths) > 0 {
		if p.MaxTokens != 0 {
			return errors.New("output_lengths: max_tokens says it too; leave one out")
		}
		said = true
	}
	if n := len(p.Sources); n > 0 && len(p.Prompts) == 0 && p.MaxTokens == 0 {
		// which have lengths of their own
		said = said || !slices.ContainsFunc(p.Sources, func(s Source) bool { return s.Trace == "" })
	}
	lacks := func(g Group) bool { return len(g.OutputLengths) == 0 }
	switch {
	case said, p.MaxTokens > 0, p.MaxTokens == 0 && len(p.Models) > 0 && !slices.ContainsFunc(p.Models, lacks):
		return nil
	}
	return fmt.Errorf("max_tokens: %d, at least 1 is needed", p.MaxTokens)
}

func unknown(value string, known []string) error {
	last := len(known) - 1
	return fmt.Errorf("%.60q, use %s or %s", value, strings.Join(known[:last], ", "), known[last])
}

// validateSchedule looks at how often and in which order.
func (p Plan) validateSchedule() error {
	if p.UntilCI != nil {
		if err := p.UntilCI.validate(p); err != nil {
			return err
		}
	}
	cold := slices.ContainsFunc(p.scopes(), func(s scope) bool { return slices.Contains(s.Starts, record.ColdStart) })
	if (cold || p.Start == record.ColdStart) && p.Isolation != "" && p.Isolation != OfLaunch {
		return fmt.Errorf("isolation: %s has one launch for several repetitions, and a cold start is each one's own; use launch", p.Isolation)
	}
	return nil
}

// validateLoad refuses loads that contradict one another.
func (p Plan) validateLoad() error {
	for _, s := range p.scopes() {
		if len(s.BatchSizes) == 0 {
			s.BatchSizes = p.BatchSizes
		}
		if len(s.Concurrency) == 0 {
			s.Concurrency = p.Concurrency
		}
		if err := p.load(s.path, s.Axes); err != nil {
			return err
		}
	}
	return nil
}

func (p Plan) load(at string, x Axes) error {
	several := func(n int) bool { return n > 1 }
	batches, clients := slices.ContainsFunc(x.BatchSizes, several), slices.ContainsFunc(x.Concurrency, several)
	if batches && clients {
		return fmt.Errorf("%sbatch_sizes: requests sent in one moment and clients that ask again when they were answered (concurrency) are two loads; "+
			"leave one out, or make it 1", at)
	}
	if batches && p.traced() {
		return fmt.Errorf("%sbatch_sizes: a trace among prompts says when requests come; leave one out", at)
	}
	t := p.Traffic
	if t == nil {
		return nil
	}
	most := slices.Max(append(append([]int{t.Concurrency}, x.BatchSizes...), x.Concurrency...))
	switch {
	case batches && t.Loop != "" && t.Loop != record.Batch:
		return fmt.Errorf("%sbatch_sizes: the loop of traffic is %s, in which there are no batches; leave one out",
			at, t.Loop)
	case batches && t.Rate > 0:
		return fmt.Errorf("%sbatch_sizes: traffic has a rate, and in an open loop there are no batches; leave one out",
			at)
	case batches && t.Concurrency > 0:
		return fmt.Errorf("%sbatch_sizes: traffic.concurrency says it too; leave one out", at)
	case t.Requests > 0 && p.loop(0, 0) != record.OpenLoop && t.Requests/max(1, t.Turns) < most:
		return fmt.Errorf("traffic.requests: %d are too few for %d at once", t.Requests, most)
	}
	return nil
}

func (p Plan) validateReference() error {
	if p.Reference == "" ||
		slices.ContainsFunc(p.scopes(), func(s scope) bool { return slices.Contains(s.Engines, p.Reference) }) {
		return nil
	}
	return fmt.Errorf("reference: %q is none of the engines (%s)", p.Reference, strings.Join(p.Engines, ", "))
}

// validateMatrix refuses a plan without cells, or with too many of them.
func (p Plan) validateMatrix() error {
	_, _, err := p.Count()
	return err
}
