package byhand

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"llmparity/browser/byhand/visitor"
	"llmparity/browser/driver"
	"llmparity/browser/serve"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/tokenizer"
)

// Request is what a person chose.
type Request struct {
	Engine    string `json:"engine"`
	Model     string `json:"model"`
	Prompt    string `json:"prompt"`
	MaxTokens int    `json:"maxTokens"`
	Context   int    `json:"context"`
	Launches  int    `json:"launches"`
	Thread    string `json:"thread"`
}

// toPage is a message to the page; one part of it is set.
type toPage struct {
	Hello *hello         `json:"hello,omitempty"`
	Event map[string]any `json:"event,omitempty"` // of the run
	Text  string         `json:"text,omitempty"`  // generated so far
	Runs  []Run          `json:"runs,omitempty"`
	Ended *ended         `json:"ended,omitempty"`
}

// hello is what the page has to know.
type hello struct {
	Engines []Engine `json:"engines"`
	Models  []string `json:"models"`
	Plan    bool     `json:"plan"` // it runs the plan by itself
	Runs    []Run    `json:"runs"`
}

// ended is how a measurement ended.
type ended struct {
	Error string `json:"error,omitempty"` // a line
}

// visit is a page that is open, and what it measures.
type visit struct {
	*visitor.Visitor
	server     *Server
	mu         sync.Mutex
	cancel     context.CancelCauseFunc // ends the measurement; nil: there is none
	vocabulary *tokenizer.Tokenizer    // of the model; nil: its tokens are not shown
	generated  []int                   // tokens so far
}

// connect is the page's end of the line.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	ends := s.ctx.Err() != nil
	if !ends {
		s.ended.Add(1)
		defer s.ended.Done()
	}
	s.mu.Unlock()
	if ends {
		return
	}
	of, err := visitor.Accept(s.ctx, w, r, func(site http.Handler) (*serve.Server, error) {
		path, end := s.mount(site)
		return serve.At(s.Base+path, end), nil
	})
	if err != nil {
		return
	}
	v := &visit{Visitor: of, server: s}
	s.mu.Lock()
	s.open[v] = true
	s.mu.Unlock()
	v.Read(v.hear)
	s.mu.Lock()
	delete(s.open, v)
	s.mu.Unlock()
}

// hear handles what the page says by itself.
func (v *visit) hear(m *visitor.Message) {
	switch {
	case m.About != nil:
		v.meet(*m.About)
	case m.Report != "":
		v.shows(m.Report)
	case m.Start != nil:
		v.start(m.Start)
	case m.Stop:
		v.stop()
	}
}

// clocksDiffer is by how much clocks may differ before it is said. Times are the server's in any case.
const clocksDiffer = 5 * time.Second

// meet says what there is to choose, or that the plan begins.
func (v *visit) meet(a visitor.About) {
	s := v.server
	s.mu.Lock()
	h := hello{s.Engines, slices.Clone(s.Models), s.Plan != nil, s.shown()}
	for title := range s.uploads {
		h.Models = append(h.Models, title)
	}
	again := s.took[a.ID]
	if s.Plan != nil && a.ID != "" { // else the browser keeps nothing
		s.took[a.ID] = true
	}
	s.mu.Unlock()
	v.Send(&toPage{Hello: &h})
	if by := time.Until(time.UnixMilli(int64(a.Now))); by.Abs() > clocksDiffer {
		v.Note(fmt.Sprintf("This device's clock differs from llmparity's by %v. Times in the record are llmparity's.",
			by.Abs().Round(time.Second)))
	}
	switch {
	case s.Plan == nil:
	case again:
		v.Send(&toPage{Ended: &ended{"this browser has run the plan already; each browser runs it once"}})
	default:
		v.begin(&Run{}, s.Plan, nil)
	}
}

// Bounds of what a person may ask for.
const (
	mostTokens   = 1 << 17
	mostLaunches = 1000
)

// start starts what a person chose.
func (v *visit) start(text json.RawMessage) {
	var r Request
	if err := json.Unmarshal(text, &r); err != nil {
		v.Send(&toPage{Ended: &ended{"what the page asks for is not known: " + fault.OneLine(err.Error())}})
		return
	}
	s := v.server
	args, path, err := s.arguments(r)
	if info, missing := os.Stat(path); err == nil && missing == nil && v.Here() { // models of the catalogue come later
		err = fits(v.Ctx(), filepath.Base(path), info.Size())
	}
	if err != nil {
		v.Send(&toPage{Ended: &ended{fault.OneLine(err.Error())}})
		return
	}
	at := slices.IndexFunc(s.Engines, func(e Engine) bool { return e.Name == r.Engine })
	run := &Run{Engine: s.Engines[at].Title,
		Asked: fmt.Sprintf("%d tokens, context %d, %s", r.MaxTokens, r.Context, r.Thread)}
	v.begin(run, args, func() { v.reads(path) })
}

// arguments are those of `llmparity run`, and the model's file. What a page sends is a value, never a flag, and it
// names only models that are offered.
func (s *Server) arguments(r Request) (args []string, path string, err error) {
	s.mu.Lock()
	uploaded := s.uploads[r.Model]
	s.mu.Unlock()
	refuse := func(format string, a ...any) error { return fault.New(fault.Usage, "", format, a...) }
	at := slices.IndexFunc(s.Engines, func(e Engine) bool { return e.Name == r.Engine })
	switch {
	case at < 0:
		return nil, "", refuse("there is no engine %q", r.Engine)
	case uploaded == "" && !slices.Contains(s.Models, r.Model):
		return nil, "", refuse("there is no model %q", r.Model)
	case r.Prompt == "":
		return nil, "", refuse("the prompt is empty")
	case r.MaxTokens < 1 || r.MaxTokens > mostTokens || r.Context < 1 || r.Context > mostTokens:
		return nil, "", refuse("tokens and context must be 1 to %d", mostTokens)
	case r.Launches < 1 || r.Launches > mostLaunches:
		return nil, "", refuse("launches must be 1 to %d", mostLaunches)
	case r.Thread != string(driver.PageThread) && r.Thread != string(driver.WorkerThread):
		return nil, "", refuse("there is no thread %q", r.Thread)
	}
	if path = uploaded; path == "" {
		path = r.Model
	}
	return slices.Concat(s.Engines[at].Args, []string{"--model=" + path, "--prompt=" + r.Prompt,
		fmt.Sprintf("--max-tokens=%d", r.MaxTokens), fmt.Sprintf("--context=%d", r.Context),
		fmt.Sprintf("--repetitions=%d", r.Launches), "--thread=" + r.Thread}), path, nil
}

// reads reads the model's vocabulary, to show the text as it comes.
func (v *visit) reads(name string) {
	path, err := models.Path(name)
	if err != nil {
		return // the run says so
	}
	t, err := models.Tokenizer(models.Model{Model: named(path), Path: path})
	if err != nil {
		return // it is shown when it is complete
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.vocabulary = t
}

// begin measures on a goroutine of its own, unless something is measured in this page.
func (v *visit) begin(r *Run, args []string, before func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cancel != nil {
		v.Note("A measurement is running in this page. Stop it first.")
		return
	}
	ctx, cancel := context.WithCancelCause(v.Ctx())
	v.cancel, v.vocabulary, v.generated = cancel, nil, nil
	v.server.ended.Go(func() {
		if before != nil {
			before()
		}
		err := v.measure(ctx, r, args)
		v.mu.Lock()
		v.cancel = nil
		v.mu.Unlock()
		cancel(nil)
		end := &ended{}
		if err != nil {
			end.Error = fault.OneLine(err.Error())
		}
		v.Send(&toPage{Ended: end})
	})
}

var errStopped = fault.New(fault.Interrupted, "", "stopped by hand")

// stop ends the measurement. The page has freed the engine's memory and removed the frame by itself.
func (v *visit) stop() {
	v.mu.Lock()
	cancel := v.cancel
	v.mu.Unlock()
	if cancel != nil {
		cancel(errStopped)
	}
	v.Lose()
}

// measure waits until no other page on the same machine measures, runs, and keeps what came of it.
func (v *visit) measure(ctx context.Context, r *Run, args []string) error {
	free, err := v.turn(ctx)
	if err != nil {
		return err
	}
	defer free()
	s := v.server
	r.Who = v.Who()
	out := &events{visit: v, run: r}
	notes := &lines{each: func(text string) {
		if !strings.HasPrefix(text, "to continue: ") { // what is not saved cannot be resumed
			v.Note(text)
		}
	}}
	args = slices.Concat(args, []string{"--json=true", "--out=" + s.scratch})
	err = s.Run(ctx, v.Visitor, args, &lines{each: out.line}, notes)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if r.dir == "" {
		return err
	}
	r.read(err)
	s.mu.Lock()
	r.ID = len(s.runs) + 1
	s.runs = append(s.runs, r)
	all, open := s.shown(), slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, p := range open { // this page may have been loaded again meanwhile
		p.Send(&toPage{Runs: all})
	}
	switch {
	case s.Plan == nil:
	case err != nil:
		s.Say(fmt.Sprintf("%s: %s", r.Who, fault.OneLine(err.Error())))
		s.forget(v)
	default:
		select {
		case s.done <- r:
		case <-s.ctx.Done():
		}
	}
	return err
}

// forget lets a browser run the plan again.
func (s *Server) forget(v *visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.took, v.ID())
}

// turn waits for the turn of this page among those of its machine.
func (v *visit) turn(ctx context.Context) (free func(), err error) {
	s := v.server
	s.mu.Lock()
	turns := s.turns[v.Machine()]
	if turns == nil {
		turns = make(chan struct{}, 1)
		s.turns[v.Machine()] = turns
	}
	s.mu.Unlock()
	free = func() { <-turns }
	select {
	case turns <- struct{}{}:
		return free, nil
	default:
	}
	v.Note("Another page on this device is measuring. This one begins when that has ended.")
	select {
	case turns <- struct{}{}:
		return free, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// shownTokens is how many of the last tokens are shown as they come.
const shownTokens = 2048

// shows shows the text of tokens as they come.
func (v *visit) shows(report string) {
	var told struct {
		Tokens []float64 `json:"tokens"`
	}
	if json.Unmarshal([]byte(report), &told) != nil || len(told.Tokens) == 0 {
		return
	}
	v.mu.Lock()
	if v.vocabulary == nil {
		v.mu.Unlock()
		return
	}
	for i := 0; i < len(told.Tokens); i += 2 {
		if id := int(told.Tokens[i]); id >= 0 && id < len(v.vocabulary.Tokens) {
			v.generated = append(v.generated, id)
		}
	}
	text := v.vocabulary.Decode(v.generated[max(0, len(v.generated)-shownTokens):])
	v.mu.Unlock()
	v.Send(&toPage{Text: strings.ToValidUTF8(text, "\ufffd")})
}

// lines calls each with every line that is written.
type lines struct {
	each func(string)
	rest string
}

func (l *lines) Write(text []byte) (int, error) {
	l.rest += string(text)
	for {
		line, rest, found := strings.Cut(l.rest, "\n")
		if !found {
			return len(text), nil
		}
		l.rest = rest
		if line != "" {
			l.each(line)
		}
	}
}

var _ io.Writer = (*lines)(nil)
