package reports

import (
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"llmparity/compare"
)

// Names and texts of others can be of any length and in any script. A longer one is cut, and a number links to the
// whole text at the end of the report.
const (
	nameLimit = 80  // of a name: a cell's label, a heading
	textLimit = 600 // of anything else in a table
)

// names are long texts that were cut, in order.
type names struct {
	whole  []string
	at     map[string]int
	cuts   map[string]int // names that were cut already, with their numbers
	labels []string       // labels that need care within sentences, the longest first
}

func newNames(res *compare.Result) *names {
	n := &names{at: map[string]int{}, cuts: map[string]int{}}
	for i := range res.Cells {
		for _, s := range []string{res.Cells[i].Label, res.Cells[i].Spec.Engine, line(res.Cells[i].Label),
			line(res.Cells[i].Spec.Engine)} {
			if (utf8.RuneCountInString(s) > nameLimit || rightToLeft(s)) && !slices.Contains(n.labels, s) {
				n.labels = append(n.labels, s)
			}
		}
	}
	slices.SortStableFunc(n.labels, func(a, b string) int { return len(b) - len(a) })
	return n
}

// rightToLeft tells whether a text has letters that are written from right to left, which would turn their neighbours.
func rightToLeft(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam)
	})
}

// number numbers a text that is cut, from 1.
func (n *names) number(s string) int {
	at, ok := n.at[s]
	if !ok {
		n.whole = append(n.whole, s)
		at = len(n.whole)
		n.at[s] = at
	}
	return at
}

// short is a name for a place without links, such as a chart.
func (n *names) short(s string) string {
	if s = line(s); utf8.RuneCountInString(s) <= nameLimit {
		return s
	}
	cut := fmt.Sprintf("%s [%d]", shorten(s, nameLimit), n.number(s))
	n.cuts[cut] = n.number(s)
	return cut
}

// shortened is a result with short labels. Its sentences keep the long ones.
func (n *names) shortened(res *compare.Result) *compare.Result {
	out := *res
	out.Cells = slices.Clone(res.Cells)
	for i := range out.Cells {
		if c := &out.Cells[i]; utf8.RuneCountInString(line(c.Label)) > nameLimit {
			c.Label = n.short(c.Label)
		}
		out.Cells[i].Spec.Engine = n.short(out.Cells[i].Spec.Engine)
	}
	return &out
}

// name shows a name.
func (n *names) name(s string) template.HTML { return n.cut(s, nameLimit) }

func (n *names) cut(s string, limit int) template.HTML {
	if short(s, limit) { // like most texts
		return template.HTML(template.HTMLEscapeString(s))
	}
	s = line(s)
	if at, ok := n.cuts[s]; ok {
		text := template.HTMLEscapeString(strings.TrimSuffix(s, fmt.Sprintf(" [%d]", at)))
		return template.HTML("<bdi>"+text+"</bdi>") + inFull(at)
	}
	if utf8.RuneCountInString(s) <= limit {
		return template.HTML("<bdi>" + template.HTMLEscapeString(s) + "</bdi>")
	}
	at := n.number(s)
	return template.HTML("<bdi>"+template.HTMLEscapeString(shorten(s, min(limit, 2*nameLimit)))+"</bdi>") + inFull(at)
}

// short tells that a text is one short line of ASCII, which needs no care.
func short(s string, limit int) bool {
	if len(s) > limit || strings.HasSuffix(s, "]") { // it may be the number of a text that was cut
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// inFull links to the whole text.
func inFull(at int) template.HTML {
	return template.HTML(fmt.Sprintf(`<a class="whole" href="#whole-%d" aria-label="[%d], the whole text">[%d]</a>`, at,
		at, at))
}

// cell shows a field of a table: a name in the first column, else perhaps a sentence.
func (n *names) cell(column int, s string) template.HTML {
	if column == 0 {
		return n.name(s)
	}
	if n.within(s) {
		return n.sentence(s)
	}
	if m := remarked.FindStringSubmatch(s); m != nil {
		return template.HTML("<bdi>" + template.HTMLEscapeString(m[1]) + " <small>" +
			template.HTMLEscapeString(line(m[2])) + "</small></bdi>")
	}
	return n.cut(s, textLimit)
}

// remarked is a number, or a dash, with a remark in brackets, which the page puts below it.
var remarked = regexp.MustCompile(`^([-+<>±]?[\d.]+|–) (\([^()]{10,80}\))$`)

// within tells whether a text contains a label that needs care.
func (n *names) within(s string) bool {
	return slices.ContainsFunc(n.labels, func(l string) bool { return strings.Contains(s, l) })
}

// sentence shows text in one line. Long labels in it are cut, and those from right to left are isolated.
func (n *names) sentence(s string) template.HTML {
	for _, l := range n.labels {
		if before, after, found := strings.Cut(s, l); found {
			return n.sentence(before) + n.name(l) + n.sentence(after)
		}
	}
	return template.HTML(template.HTMLEscapeString(line(s)))
}

// plain is a text for a place without markup; long labels in it are cut.
func (n *names) plain(s string) string {
	for _, l := range n.labels {
		if utf8.RuneCountInString(l) > nameLimit {
			s = strings.ReplaceAll(s, l, n.short(l))
		}
	}
	return s
}

// drawings encodes what the page draws, with long labels cut.
func (n *names) drawings(all map[string][]drawing) ([]byte, error) {
	text, err := marshal(all)
	if err != nil || !slices.ContainsFunc(
		n.labels, func(l string) bool { return utf8.RuneCountInString(l) > nameLimit }) {
		return text, err
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("reading the charts again: %w", err)
	}
	return marshal(eachText(v, n.plain))
}

// eachText replaces every text in a chart's options, keys included.
func eachText(v any, by func(string) string) any {
	switch v := v.(type) {
	case string:
		return by(v)
	case []any:
		for i := range v {
			v[i] = eachText(v[i], by)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[by(key)] = eachText(value, by)
		}
		return out
	}
	return v
}
