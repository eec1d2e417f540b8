// Package parity compares outputs of cells token by token: where two texts differ first, how close a tie it was there,
// whether engines that are forced to one text predict the same, and whether a cell agrees with itself.
//
// It cannot see why engines differ. Gaps are known only where engines scored a text after the measurement; the rest of
// a record has ids and whole texts. Outputs without token ids are compared as text. Of each cell it compares one
// request, the first.
package parity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
)

// Parity compares the outputs of two cells token by token.
type Parity struct {
	A int `json:"a"` // indexes into Cells
	B int `json:"b"`
	// Compared is false if one side has no output; Verdict then says which.
	Compared  bool   `json:"compared"`
	Identical bool   `json:"identical"`
	ByText    bool   `json:"by_text,omitempty"` // texts were compared: of a side there are no ids
	Verdict   string `json:"verdict"`
	// Unverified are the cells whose weights are not verified to be the same.
	Unverified []string `json:"weights_not_verified,omitempty"`

	Tokenisation string `json:"tokenisation"`       // in words
	SamePrompt   *bool  `json:"same_prompt_tokens"` // nil: not known
	PromptA      []int  `json:"prompt_ids_a"`
	PromptB      []int  `json:"prompt_ids_b"`

	Tokens int         `json:"tokens_compared"`
	Agreed int         `json:"tokens_agreed"` // before the first difference
	First  *Divergence `json:"first_divergence,omitempty"`
	IDsA   []int       `json:"ids_a"`
	IDsB   []int       `json:"ids_b"`

	TextA  string `json:"text_a"`
	TextB  string `json:"text_b"`
	Shared int    `json:"text_shared_bytes"` // length of what both texts begin with

	// Scores is the result of the score check; nil if neither engine was checked.
	Scores *Check `json:"scores,omitempty"`

	// Forced compares what both predict for one text; nil if they did not score one, and Unforced says why.
	Forced   *Forced `json:"teacher_forced,omitempty"`
	Unforced string  `json:"teacher_forced_absent,omitempty"`

	detail  detail // the verdict without what its state says
	but     string // what the verdict leaves open, which it ends with
	rounded bool   // an engine has other weights than the model's file
}

// Divergence is the first token that differs.
type Divergence struct {
	Index int `json:"index"` // from 0
	IDA   int `json:"id_a"`
	IDB   int `json:"id_b"`
	// How close a tie it was for each side; nil if the engine did not score this position. Unknown says why neither
	// did.
	MarginA *Margin `json:"margin_a,omitempty"`
	MarginB *Margin `json:"margin_b,omitempty"`
	Unknown string  `json:"margin_absent,omitempty"`
	Words   string  `json:"margin_words,omitempty"` // what follows from them
	// Rounding is true if the tie was so close that rounding explains the difference; false if that is not known.
	Rounding bool `json:"rounding_is_enough"`
}

// SelfParity says whether a cell's own launches agree.
type SelfParity struct {
	Known      bool   `json:"known"`
	Identical  bool   `json:"identical"`
	Sequences  int    `json:"sequences"` // requests compared
	FirstIndex int    `json:"first_divergence_index,omitempty"`
	Verdict    string `json:"verdict"`
}

// output is what a request generated.
type output struct {
	prompt, ids []int
	text        string
	finish      string
	label       string // of the cell, or of the run
	count       int    // of tokens, as they came or as the engine counts them
}

// mute reports whether tokens came without ids and without text, so that nothing can be compared.
func (o output) mute() bool { return o.count > 0 && len(o.ids) == 0 && o.text == "" }

// Mute reports whether no request of a cell has token ids or text, although tokens came.
func Mute(counted []*record.Attempt) bool {
	all := outputs(counted)
	return len(all) > 0 && !slices.ContainsFunc(all, func(o output) bool { return !o.mute() })
}

// outputs are the outputs of all launches, for requests with the same prompt.
func outputs(attempts []*record.Attempt) []output {
	var out []output
	var first *record.Request
	for _, a := range attempts {
		for _, r := range alikeRequests(a.Measured()) {
			if first = cmp.Or(first, r); r.PromptHash != first.PromptHash {
				continue // the first one of this launch failed
			}
			out = append(out, output{prompt: r.PromptIDs, ids: ids(r), text: r.Text, finish: r.Finish,
				count: r.Tokened()})
		}
	}
	return out
}

// alikeRequests are the requests of a launch with the same prompt as the one that was due first. The kinds of a mix and
// the turns of a conversation have other prompts.
func alikeRequests(requests []*record.Request) []*record.Request {
	if len(requests) < 2 {
		return requests
	}
	first := slices.MinFunc(requests, func(a, b *record.Request) int {
		return cmp.Or(cmp.Compare(figure.Due(a), figure.Due(b)), cmp.Compare(a.Client, b.Client),
			cmp.Compare(a.ID, b.ID))
	})
	out := []*record.Request{first}
	for _, r := range requests {
		if r != first && r.Kind == first.Kind && r.Turn == first.Turn && r.PromptHash == first.PromptHash {
			out = append(out, r)
		}
	}
	return out
}

// ids is nil if the engine reports no ids: such tokens have a negative one.
func ids(r *record.Request) []int {
	var out []int
	for _, t := range r.Tokens {
		if t.ID < 0 {
			return nil
		}
		out = append(out, t.ID)
	}
	return out
}

// WithItself compares the launches of a cell: by token ids, or by text if the engine reports none.
func WithItself(counted []*record.Attempt, temperature float64) SelfParity {
	all := outputs(counted)
	s := SelfParity{Sequences: len(all)}
	if temperature != 0 {
		s.Verdict = fmt.Sprintf(explain.OutputNotCompared, fmt.Sprintf(explain.OutputRandom, temperature))
		return s
	}
	byText := slices.ContainsFunc(all, func(o output) bool { return len(o.ids) == 0 })
	switch {
	case byText && slices.ContainsFunc(all, func(o output) bool { return o.text == "" }):
		s.Verdict = "not known: no token ids"
		if Mute(counted) {
			s.Verdict += " and no text"
		}
		return s
	case len(all) < 2:
		s.Verdict = "not known: needs two counted launches"
		return s
	}
	s.Known = true
	const differ = "requests of the cell differ: "
	for n, o := range all[1:] {
		if byText && o.text != all[0].text {
			s.Verdict = fmt.Sprintf(differ+"the text of request %d differs from that of request 1 after %d bytes", n+2,
				sharedText(all[0].text, o.text))
			return s
		}
		if at := agreed(all[0].ids, o.ids); !byText && (at < len(o.ids) || at < len(all[0].ids)) {
			s.FirstIndex = at
			s.Verdict = fmt.Sprintf(differ+"request %d differs from request 1 at token %d", n+2, at+1)
			return s
		}
	}
	s.Identical = true
	s.Verdict = fmt.Sprintf("all %d requests gave the same text", len(all))
	if !byText {
		s.Verdict = fmt.Sprintf("all %d requests gave the same %d token ids", len(all), len(all[0].ids))
	}
	return s
}

// agreed is the length of the common beginning of two sequences.
func agreed[E comparable](a, b []E) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Party is one of two cells that are compared.
type Party struct {
	Cell        int // index into Cells
	Label       string
	Temperature float64
	Counted     []*record.Attempt
	Scored      *Scored // nil: it scored no text
	TextOf      string  // the label of the cell whose text it scored
	NoTokenIDs  bool
	Unverified  bool   // nobody has verified its weights
	Values      string // identifies the values of its weights; empty: unknown
	Requantised bool   // its weights were rounded by more than its arithmetic rounds
	Rounded     bool   // some weights were rounded when its engine converted them
	Self        SelfParity
	Arithmetic  []rounding.Arithmetic // it computes in; nil: unknown
	Checked     *Checked              // its score check; nil: none
	Anchor      *Checked              // the reference implementation's, of its weights; nil: none
	Chunk       int                   // with kernels that merge chunks of a prompt wrongly, the tokens of a chunk; 0: with others
}

// Of compares the first measured requests of two cells.
func Of(left, right Party) Parity {
	p := compared(left, right)
	p.say()
	return p
}

func compared(left, right Party) Parity {
	p := empty(left.Cell, right.Cell)
	a, b := outputs(left.Counted), outputs(right.Counted)
	switch {
	case left.Temperature != 0:
		p.found(explain.OutputRandom, left.Temperature)
		return p
	case len(a) == 0:
		p.found(explain.OutputNoRequest, left.Label)
		return p
	case len(b) == 0:
		p.found(explain.OutputNoRequest, right.Label)
		return p
	}
	if p.Forced = forced(left, right); p.Forced == nil {
		p.Unforced = unforced(left, right)
	}
	p.Scores = checked(left, right)
	p.fill(a[0].of(left.Label), b[0].of(right.Label))
	if p.First != nil {
		p.First.margins(&p, left.Scored, right.Scored)
		if p.First.Words = p.First.words(left, right, &p); p.First.Words != "" {
			p.detail.add("; " + p.First.Words)
		}
	}
	if !p.Compared {
		return p
	}
	for _, s := range []Party{left, right} {
		p.rounded = p.rounded || s.Rounded
		if s.Unverified {
			p.Unverified = append(p.Unverified, s.Label)
		}
		if s.Self.Known && !s.Self.Identical {
			p.but += fmt.Sprintf(explain.OutputUnstable, s.Label)
		}
	}
	if len(p.Unverified) > 0 {
		p.detail.add(fmt.Sprintf(explain.OutputUnverified, strings.Join(p.Unverified, " and ")))
	}
	return p
}

// found sets what the outputs have in common, or why they are not compared.
func (p *Parity) found(format string, args ...any) {
	p.detail = detail{fmt.Sprintf(format, args...), explain.Sentence(format, args...)}
}

// detail is a text in a sentence, and as one.
type detail struct{ text, sentence string }

func (d *detail) add(s string) { d.text, d.sentence = d.text+s, d.sentence+s }

// say writes the verdict.
func (p *Parity) say() {
	p.detail.add(p.but)
	switch {
	case !p.Compared:
		p.Verdict = fmt.Sprintf(explain.OutputNotCompared, p.detail.text)
	case p.First != nil:
		p.Verdict = fmt.Sprintf(explain.OutputDiffersAt, p.First.Index+1, p.detail.text)
	default:
		p.Verdict = p.detail.text
	}
}

func empty(a, b int) Parity {
	return Parity{A: a, B: b, PromptA: []int{}, PromptB: []int{}, IDsA: []int{}, IDsB: []int{},
		Tokenisation: explain.PromptUnknown}
}

// SameCell compares the outputs of one cell in the baseline run and in the run. random: tokens are drawn at random.
func SameCell(base, now []*record.Attempt, random bool) Parity {
	p := empty(0, 0)
	a, b := outputs(base), outputs(now)
	switch {
	case len(a) == 0 || len(b) == 0:
		p.found(explain.OutputNoRequest, "one")
	case random:
		p.found(explain.OutputDrawn)
	default:
		p.fill(a[0].of("the baseline run"), b[0].of("the run"))
	}
	p.say()
	return p
}

// of names the cell or run of the output.
func (o output) of(label string) output {
	o.label = label
	return o
}

func (p *Parity) fill(a, b output) {
	p.PromptA, p.PromptB = append(p.PromptA, a.prompt...), append(p.PromptB, b.prompt...)
	p.IDsA, p.IDsB = append(p.IDsA, a.ids...), append(p.IDsB, b.ids...)
	p.TextA, p.TextB, p.Shared = a.text, b.text, sharedText(a.text, b.text)
	p.tokenisation()
	var without []string // of which there are no ids
	lacks := explain.OutputNoTokens
	for _, o := range []output{a, b} {
		if len(o.ids) == 0 {
			without = append(without, o.label)
		}
		if o.mute() {
			lacks = explain.OutputMute
		}
	}
	p.Compared = len(without) == 0 || a.text != "" && b.text != ""
	switch {
	case len(without) == 0:
		p.byIDs(a, b)
	case p.Compared:
		p.byText(a, b)
		p.detail.add(fmt.Sprintf(explain.OutputNoIDs, strings.Join(without, " and ")))
		if !p.Identical && a.count != b.count {
			p.detail.add(endings(a, a.count, explain.OutputTokenUnit, b, b.count))
		}
	default:
		p.found(lacks, strings.Join(without, " and "))
	}
}

func (p *Parity) tokenisation() {
	if len(p.PromptA) == 0 || len(p.PromptB) == 0 {
		return
	}
	p.SamePrompt = new(slices.Equal(p.PromptA, p.PromptB))
	if *p.SamePrompt {
		p.Tokenisation = fmt.Sprintf(explain.PromptSame, len(p.PromptA))
		return
	}
	p.Tokenisation = fmt.Sprintf(explain.PromptDiffers, agreed(p.PromptA, p.PromptB)+1,
		len(p.PromptA), len(p.PromptB))
}

func (p *Parity) byIDs(a, b output) {
	p.Tokens, p.Agreed = min(len(a.ids), len(b.ids)), agreed(a.ids, b.ids)
	switch {
	case p.Agreed < p.Tokens:
		p.First = &Divergence{Index: p.Agreed, IDA: a.ids[p.Agreed], IDB: b.ids[p.Agreed]}
		p.found(explain.OutputTokens, p.First.IDA, p.First.IDB, p.Agreed, p.Tokens)
	case len(a.ids) != len(b.ids):
		p.found(explain.OutputShorterIDs, p.Tokens)
		p.detail.add(endings(a, len(a.ids), "", b, len(b.ids)))
	default:
		p.Identical = true
		p.found(explain.OutputSameIDs, p.Agreed, p.Tokens)
	}
	if p.SamePrompt != nil && !*p.SamePrompt {
		p.but = explain.OutputTokenized
	}
}

// endings say after how many tokens two outputs ended, and why.
func endings(a output, ended int, unit string, b output, other int) string {
	why := func(o output) string { return cmp.Or(o.finish, explain.OutputNoReason) }
	return fmt.Sprintf(explain.OutputEnded, a.label, ended, unit, why(a), b.label, other, why(b))
}

func (p *Parity) byText(a, b output) {
	p.ByText, p.Identical = true, a.text == b.text
	switch {
	case p.Identical:
		p.found(explain.OutputSameText)
	case p.Shared == min(len(a.text), len(b.text)):
		p.found(explain.OutputShorterText, p.Shared)
	default:
		p.found(explain.OutputOtherText, p.Shared)
	}
}

// sharedText is the length in bytes of the common beginning of two texts, in whole characters.
func sharedText(a, b string) int {
	n := agreed([]byte(a), []byte(b))
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return n
}
