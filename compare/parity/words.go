package parity

import (
	"fmt"
	"slices"
	"strings"
)

// Words say whether the pairs of cells generated the same; empty where there is none.
func Words(pairs []Parity, label func(cell int) string) string {
	var compared []Parity
	identical := 0
	for _, p := range pairs {
		if p.Compared {
			compared = append(compared, p)
		}
		if p.Identical {
			identical++
		}
	}
	switch {
	case len(compared) == 0 && len(pairs) > 0:
		return "Token parity is not known: " + strings.TrimPrefix(pairs[0].Verdict, "not compared: ") + "."
	case len(compared) == 0:
		return ""
	case len(compared) > 1 && identical == len(compared):
		return fmt.Sprintf("All %d pairs of cells generated identical %s from %s.", identical,
			whatWasCompared(compared),
			fromWhat(compared))
	case len(compared) > 1:
		return fmt.Sprintf("%d of %d pairs of cells generated identical %s from %s%s.", identical, len(compared),
			whatWasCompared(compared), fromWhat(compared), ties(compared))
	}
	p := compared[0]
	a, b := label(p.A), label(p.B)
	if p.Identical && p.Tokens > 0 {
		return fmt.Sprintf("%s and %s generated the same %d tokens, id by id, from %s%s.", a, b, p.Tokens,
			fromWhat(compared), p.but)
	}
	return fmt.Sprintf("%s and %s: %s.", a, b, p.Verdict)
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
		if p.ByText {
			texts++
		}
	}
	switch texts {
	case 0:
		return "tokens"
	case len(pairs):
		return "text"
	}
	return fmt.Sprintf("output (%d by tokens, %d by text)", len(pairs)-texts, texts)
}
