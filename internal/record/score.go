package record

import (
	"fmt"
	"math"
)

// Score is an engine's opinion of one position in a text that is forced on it token by token. Log-probabilities are
// natural logarithms of the softmax at temperature 1 of the raw logits over the whole vocabulary, before any sampling.
type Score struct {
	Position int     // of the forced token in the text, from 0
	Forced   int     // its id
	LogProb  float64 // of the forced token; NaN if too small for the engine to report
	// Top are the likeliest tokens in order; the engine would have chosen the first.
	Top []Candidate
}

// Candidate is a possible token.
type Candidate struct {
	ID      int
	LogProb float64
}

// Chosen returns the id that the engine would have chosen.
func (s Score) Chosen() int { return s.Top[0].ID }

// Margin is the difference between the two highest log-probabilities, which is that of their logits.
func (s Score) Margin() float64 { return s.Top[0].LogProb - s.Top[1].LogProb }

// LogProbOf returns the log-probability of a token, if the engine reports it.
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

// Sound returns an error unless the score has two candidates in order and plausible log-probabilities.
func (s Score) Sound() error {
	if len(s.Top) < 2 {
		return fmt.Errorf("position %d: %d candidates, need at least 2", s.Position, len(s.Top))
	}
	for i, c := range s.Top {
		switch {
		case math.IsNaN(c.LogProb) || c.LogProb < least || c.LogProb > tolerated:
			return fmt.Errorf("position %d: log-probability of token %d is %g", s.Position, c.ID, c.LogProb)
		case i > 0 && c.LogProb > s.Top[i-1].LogProb:
			return fmt.Errorf("position %d: candidate %d is likelier than the one before it", s.Position, i+1)
		case c.ID < 0:
			return fmt.Errorf("position %d: candidate %d has the id %d", s.Position, i+1, c.ID)
		}
	}
	if s.LogProb < least || s.LogProb > tolerated { // false for NaN
		return fmt.Errorf("position %d: log-probability of the forced token is %g", s.Position, s.LogProb)
	}
	return nil
}

// tolerated is how far rounding may raise a log-probability above 0.
const tolerated = 1e-4

// least is a bound that no real log-probability comes near.
const least = -1e6

// Scoring describes what an attempt scores: tokens that an engine chose when it ran freely, or a window of a given
// text.
type Scoring struct {
	Reference int   `json:"reference_cell"`    // cell that chose the tokens
	Attempt   int   `json:"reference_attempt"` // attempt that chose the tokens
	PromptIDs []int `json:"prompt_ids"`        // token ids of the prompt
	Tokens    int   `json:"tokens"`            // number of forced tokens
	Top       int   `json:"top"`               // candidates for each position
	// Window is what is scored of the text that the plan gives for quality; nil: an engine's output. Reference is then
	// the setup's cell that others are compared with.
	Window *Window `json:"window,omitempty"`
	// Check is set if this is a score check: of a text that all engines of a model score in every run.
	Check *ScoreCheck `json:"check,omitempty"`
}

// ScoreCheck is what a scoring has that checks whether engines compute the same.
type ScoreCheck struct {
	Text       string   `json:"text"`                 // whose text it is, in words
	IDs        []int    `json:"ids"`                  // the text; positions before the first one that is scored are context
	AsPrompt   int      `json:"as_prompt"`            // positions computed as a prompt; the others step by step
	Arithmetic []string `json:"arithmetic,omitempty"` // what moves log-probabilities
	// Anchor is set if llmparity's reference implementation computed the scores, and not the cell's engine.
	Anchor *Anchor `json:"anchor,omitempty"`
}

// Anchor is what the reference implementation computed.
type Anchor struct {
	SHA256 string `json:"sha256"` // of the weights
	// Yardsticks are how far log-probabilities moved when everything was moved by a rounding step, by arithmetics.
	Yardsticks map[string]float64 `json:"yardsticks"`
}

// Window is a part of a text, which an engine scores by itself.
type Window struct {
	Text   string `json:"text"`   // the file's path, or builtin
	SHA256 string `json:"sha256"` // of the text
	Number int    `json:"number"` // from 1
	Of     int    `json:"of"`     // all windows of the text
}

// At returns the window that is scored; a zero one for an engine's output, and for nothing.
func (s *Scoring) At() Window {
	if s == nil || s.Window == nil {
		return Window{}
	}
	return *s.Window
}

// Checks reports whether it is a score check, by an engine or by the reference implementation.
func (s *Scoring) Checks() bool { return s != nil && s.Check != nil }

// Anchored reports whether the reference implementation computed the scores.
func (s *Scoring) Anchored() bool { return s.Checks() && s.Check.Anchor != nil }
