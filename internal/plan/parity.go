package plan

// Whether engines are asked, when all is measured, what they think of one and the same text.
const (
	// where their own texts part, which is what a plan that says nothing gets: it tells how near they were
	ScoreDiffering = iota
	ScoreAll
	ScoreNothing
)

// Scores tells which prompts' texts are scored.
func (p Plan) Scores() int {
	switch {
	case p.Parity == nil:
		return ScoreDiffering
	case *p.Parity:
		return ScoreAll
	}
	return ScoreNothing
}
