package parity

import (
	"fmt"
	"slices"
	"strings"
)

// Answer says whether pairs of cells generated the same, in a headline and a text; false where that is not known.
func Answer(pairs []Parity, label func(cell int) string) (headline, text string, known bool) {
	compared := slices.DeleteFunc(slices.Clone(pairs), func(p Parity) bool { return !p.Compared })
	identical := 0
	for _, p := range compared {
		identical += one(p.Identical)
	}
	n := len(compared)
	if n == 0 {
		return "Not compared", strings.TrimPrefix(pairs[0].Verdict, "not compared: "), false
	}
	if n > 1 {
		text = fmt.Sprintf("pairs of cells generated identical %s from %s", whatWasCompared(compared), fromWhat(compared))
		switch {
		case identical < n:
			return fmt.Sprintf("Identical in %d of %d pairs", identical, n),
				fmt.Sprintf("%d of %d %s%s", identical, n, text, ties(compared)), true
		case n == 2:
			return "Identical in both pairs", "All 2 " + text, true
		}
		return fmt.Sprintf("Identical in all %d pairs", n), fmt.Sprintf("All %d %s", n, text), true
	}
	p := compared[0]
	a, b := label(p.A), label(p.B)
	switch {
	case p.Identical && p.ByText:
		return "Identical text", fmt.Sprintf("%s and %s: %s", a, b, p.Verdict), true
	case p.Identical:
		return "Identical", fmt.Sprintf("%s and %s generated the same %d tokens, id by id, from %s%s", a, b, p.Tokens,
			fromWhat(compared), p.but), true
	case p.First != nil:
		headline = fmt.Sprintf("Different from token %d", p.Agreed+1)
		return headline, strings.TrimPrefix(p.Verdict, strings.ToLower(headline)+" on: "), true
	}
	return "Different", p.Verdict, true
}

// fromWhat claims no more of the weights than is known.
func fromWhat(pairs []Parity) string {
	if slices.ContainsFunc(pairs, func(p Parity) bool { return len(p.Unverified) > 0 }) {
		return "the same prompt and unverified weights of the same name"
	}
	return "the same weights and prompt"
}

func whatWasCompared(pairs []Parity) string {
	texts := 0
	for _, p := range pairs {
		texts += one(p.ByText)
	}
	switch texts {
	case 0:
		return "tokens"
	case len(pairs):
		return "text"
	}
	return fmt.Sprintf("output (%d by tokens, %d by text)", len(pairs)-texts, texts)
}
