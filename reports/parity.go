package reports

import (
	"fmt"
	"html/template"
	"strings"

	"llmparity/compare"
)

// parityBlock is a pair with its tokens. Around holds the columns next to the first difference, or the first ones.
type parityBlock struct {
	A, B             string
	ColourA, ColourB template.CSS
	Verdict          string
	Identical        bool
	Compared         bool
	Tokenisation     string
	Title            string // of the tokens
	Around           []tokenPair
	HasText          bool
	Shared           string // what both texts begin with
	RestA, RestB     string
	PromptA, PromptB string // every id
	AllA, AllB       string
}

type tokenPair struct {
	Index   int // from 1
	A, B    string
	Differs bool
}

// shownTokens is how many tokens the table around a difference has.
const shownTokens = 24

func newParityBlock(v *view, p compare.Parity) parityBlock {
	b := parityBlock{A: line(v.res.Cells[p.A].Label), B: line(v.res.Cells[p.B].Label),
		ColourA: template.CSS(v.colour(p.A)), ColourB: template.CSS(v.colour(p.B)), Verdict: line(p.Verdict),
		Identical: p.Identical, Compared: p.Compared, Tokenisation: line(p.Tokenisation), HasText: p.TextA != "" || p.TextB != "",
		PromptA: join(p.PromptA), PromptB: join(p.PromptB), AllA: join(p.IDsA), AllB: join(p.IDsB),
		Shared: clean(p.TextA[:p.Shared]), RestA: clean(p.TextA[p.Shared:]), RestB: clean(p.TextB[p.Shared:])}
	longest := max(len(p.IDsA), len(p.IDsB))
	from := 0
	b.Title = "The first token ids"
	if p.Compared && !p.Identical && longest > 0 {
		from = max(0, p.Agreed-shownTokens/2)
		b.Title = "Token ids around the first difference"
	}
	for i := from; i < min(longest, from+shownTokens); i++ {
		b.Around = append(b.Around, tokenPair{i + 1, at(p.IDsA, i), at(p.IDsB, i), at(p.IDsA, i) != at(p.IDsB, i)})
	}
	return b
}

func at(ids []int, i int) string {
	if i < len(ids) {
		return fmt.Sprint(ids[i])
	}
	return "–"
}

func join(ids []int) string {
	return strings.Trim(fmt.Sprint(ids), "[]")
}
