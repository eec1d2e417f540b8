package record

import (
	"fmt"
	"math"
	"strconv"
)

// Score is what an engine thinks of one place in a text that it was given token by token. Log-probabilities are natural
// logarithms of the softmax, at temperature 1, of the raw logits over the whole vocabulary: nothing that samples has
// touched them.
type Score struct {
	Position int     // of the forced token in the text, from 0
	Forced   int     // its id
	LogProb  float64 // of the forced token; NaN where the engine can't tell one so small
	// Top are the likeliest tokens, the likeliest first: that one the engine would have chosen.
	Top []Candidate
}

// Candidate is a token that might have come.
type Candidate struct {
	ID      int
	LogProb float64
}

// Chosen is the id that the engine would have chosen.
func (s Score) Chosen() int { return s.Top[0].ID }

// Margin is how far the likeliest token lies above the next one, in natural logarithms: it is the difference of their
// logits.
func (s Score) Margin() float64 { return s.Top[0].LogProb - s.Top[1].LogProb }

// LogProbOf gives the log-probability of a token where the engine told it.
func (s Score) LogProbOf(id int) (float64, bool) {
	if id == s.Forced {
		return s.LogProb, !math.IsNaN(s.LogProb)
	}
	for _, c := range s.Top {
		if c.ID == id {
			return c.LogProb, true
		}
	}
	return 0, false
}

// Sound says what is wrong with a score that an engine told: every reader counts on two candidates in order.
func (s Score) Sound() error {
	if len(s.Top) < 2 {
		return fmt.Errorf("position %d: %d candidates, at least 2 are needed", s.Position, len(s.Top))
	}
	for i, c := range s.Top {
		switch {
		case math.IsNaN(c.LogProb) || c.LogProb < least || c.LogProb > tolerated:
			return fmt.Errorf("position %d: the log-probability of token %d is %g", s.Position, c.ID, c.LogProb)
		case i > 0 && c.LogProb > s.Top[i-1].LogProb:
			return fmt.Errorf("position %d: candidate %d is likelier than the one before it", s.Position, i+1)
		case c.ID < 0:
			return fmt.Errorf("position %d: candidate %d has the id %d", s.Position, i+1, c.ID)
		}
	}
	if s.LogProb < least || s.LogProb > tolerated { // NaN: it can't be told
		return fmt.Errorf("position %d: the log-probability of the forced token is %g", s.Position, s.LogProb)
	}
	return nil
}

// tolerated is how far the logarithm of a probability may lie above 0 by rounding.
const tolerated = 1e-4

// least is a log-probability that no model's logits come near: what is below it is no figure.
const least = -1e6

// scoreColumns are those of scores.csv: a row a candidate. rank is 0 for a forced token that is none of the likeliest;
// logprob is empty where the engine can't tell it.
func scoreColumns() []string {
	return []string{"cell", "attempt", "position", "rank", "id", "logprob", "forced"}
}

// Scoring tells what an attempt scores: the tokens that another cell's engine, or its own, chose when it ran freely.
type Scoring struct {
	Reference int   `json:"reference_cell"`
	Attempt   int   `json:"reference_attempt"`
	PromptIDs []int `json:"prompt_ids"`
	Tokens    int   `json:"tokens"` // how many are forced
	Top       int   `json:"top"`    // candidates a position
}

// Score writes what an engine thinks of one place.
func (r *Recording) Score(s Score) {
	w := r.w
	w.mu.Lock()
	defer w.mu.Unlock()
	row := func(rank, id int, logProb float64) {
		l := integers(w.line[:0], int64(r.cell.ID), int64(r.id), int64(s.Position), int64(rank), int64(id))
		if !math.IsNaN(logProb) {
			l = strconv.AppendFloat(l, logProb, 'f', 6, 64)
		}
		l = append(l, ',')
		forced := int64(0)
		if id == s.Forced {
			forced = 1
		}
		w.line = end(integers(l, forced))
		w.write(w.scores, w.line)
	}
	among := false
	for i, c := range s.Top {
		row(i+1, c.ID, c.LogProb)
		among = among || c.ID == s.Forced
	}
	if !among {
		row(0, s.Forced, s.LogProb)
	}
}

// score drops rows of attempts that never reached the journal, as those of samples are.
func (b *builder) score(h header) func(*row) error {
	attemptAt, positionAt, rankAt, idAt := h.column("attempt"), h.column("position"), h.column("rank"), h.column("id")
	logProbAt, forcedAt := h.column("logprob"), h.column("forced")
	return func(r *row) error {
		attempt, position, rank, id := r.integer(attemptAt), int(r.integer(positionAt)), r.integer(rankAt),
			int(r.integer(idAt))
		forced, logProb := r.integer(forcedAt), math.NaN()
		if len(r.text(logProbAt)) > 0 {
			logProb = r.number(logProbAt)
		}
		a, ok := b.attempts[int(attempt)]
		if r.err != nil || !ok || a.Scoring == nil {
			return r.err
		}
		if n := len(a.Scores); n == 0 || a.Scores[n-1].Position != position {
			a.Scores = append(a.Scores, Score{Position: position, Forced: NoID, LogProb: math.NaN()})
		}
		s := &a.Scores[len(a.Scores)-1]
		if forced == 1 {
			s.Forced, s.LogProb = id, logProb
		}
		if rank > 0 {
			s.Top = append(s.Top, Candidate{id, logProb})
		}
		return nil
	}
}

// wholeScores checks the scores of every attempt that says of itself that it scored all: what was cut, or isn't sound,
// is dropped with a warning, for nobody can tell what is missing.
func (b *builder) wholeScores() {
	for _, a := range b.run.Scorings {
		if a.Status != OK {
			a.Scores = nil
			continue
		}
		err := a.soundScores()
		if err != nil {
			a.Scores = nil
			b.run.Warnings = append(b.run.Warnings, Warning{Code: "scores-missing", Text: fmt.Sprintf(
				"the scores of attempt %d are not used: %v", a.ID, err)})
		}
	}
}

func (a *Attempt) soundScores() error {
	if want := a.Scoring.Tokens; len(a.Scores) != want {
		return fmt.Errorf("%d positions were scored, and %d are in the record", want, len(a.Scores))
	}
	for i, s := range a.Scores {
		if s.Position != i {
			return fmt.Errorf("position %d stands where %d belongs", s.Position, i)
		}
		if s.Forced == NoID {
			return fmt.Errorf("position %d: there is no forced token", i)
		}
		if err := s.Sound(); err != nil {
			return err
		}
	}
	return nil
}
