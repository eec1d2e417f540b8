package reports

import (
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"llmparity/compare"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
)

// Names and texts of others can be of any length and in any script. The page cuts longer ones.
const (
	nameLimit  = 80  // of a name: a cell's label, a heading
	titleLimit = 160 // of the answer in one line
	textLimit  = 600 // of anything else in a table, which opens on a click
)

// names shows texts of others on the page.
type names struct {
	cut    *strings.Replacer // long labels, also within sentences
	labels []string          // of cells, as they are shown
}

func newNames(res *compare.Result) *names {
	var whole, pairs []string
	for _, c := range res.Cells {
		whole = explain.AppendNew(explain.AppendNew(whole, plain.Line(c.Label)), plain.Line(c.Spec.Engine))
	}
	for i, short := range plain.Fit(whole, nameLimit) {
		if short != whole[i] {
			pairs = append(pairs, whole[i], short)
		}
	}
	n := &names{cut: strings.NewReplacer(pairs...)}
	for _, c := range res.Cells {
		n.labels = append(n.labels, n.plain(c.Label))
	}
	return n
}

// shortened are the widths in characters for which charts have labels: a chart takes the widest that it has room for.
var shortened = []int{48, 40, 34, 28, 25, 22, 20, 18, 16, 13, 10}

// short has for each label that is too long for a chart its forms, from the widest to the narrowest.
func (n *names) short() map[string][]string {
	out := map[string][]string{}
	for _, width := range shortened {
		for i, form := range plain.Fit(n.labels, width) {
			out[n.labels[i]] = append(out[n.labels[i]], form)
		}
	}
	return out
}

// plain is a text in one line, with long labels cut.
func (n *names) plain(s string) string { return n.cut.Replace(plain.Line(s)) }

// sentence is plain, escaped.
func (n *names) sentence(s string) template.HTML {
	return template.HTML(template.HTMLEscapeString(n.plain(s)))
}

// name shows a name; pointing at one that was cut shows the whole.
func (n *names) name(s string) template.HTML {
	whole := plain.Line(s)
	shown := n.plain(s)
	if utf8.RuneCountInString(shown) > nameLimit+10 && !slices.Contains(n.labels, shown) {
		shown = plain.Shorten(shown, nameLimit)
	}
	if shown == whole {
		return template.HTML(isolated(shown))
	}
	escape := template.HTMLEscapeString
	return template.HTML(`<bdi title="` + escape(whole) + `">` + escape(shown) + "</bdi>")
}

// headline shows the answer. A short name such as smol-Q8_0 stays on one line.
func (n *names) headline(s string) template.HTML {
	const most = 20 // letters, which fit on a phone
	words := strings.Split(plain.Shorten(n.plain(s), titleLimit), " ")
	for i, word := range words {
		unbroken := strings.Contains(word, "-") && utf8.RuneCountInString(word) <= most
		if words[i] = template.HTMLEscapeString(word); unbroken {
			words[i] = `<span class="unbroken">` + words[i] + "</span>"
		}
	}
	return template.HTML(strings.Join(words, " "))
}

// cell shows a field of a table: a name in the first column, else perhaps a sentence.
func (n *names) cell(column int, s string) template.HTML {
	if column == 0 {
		return n.name(s)
	}
	if m := remarked.FindStringSubmatch(s); m != nil {
		return template.HTML("<bdi>" + template.HTMLEscapeString(m[1]) + " <small>" +
			template.HTMLEscapeString(plain.Line(m[2])) + "</small></bdi>")
	}
	text := n.plain(s)
	shown := isolated(text)
	if utf8.RuneCountInString(text) > textLimit {
		shown = `<details class="whole"><summary>` + isolated(plain.Shorten(text, 2*nameLimit)) + "</summary>" +
			shown + "</details>"
	}
	return template.HTML(shown)
}

// isolated keeps a text that may be written from right to left from turning its neighbours.
func isolated(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) {
		return "<bdi>" + template.HTMLEscapeString(s) + "</bdi>"
	}
	return template.HTMLEscapeString(s)
}

// remarked is a number, or a dash, with a remark in brackets, which the page puts below it.
var remarked = regexp.MustCompile(`^([-+<>±]?[\d.]+|–) (\([^()]{10,80}\))$`)

// drawings encodes what the page draws, with long labels cut.
func (n *names) drawings(all map[string][]chart.Drawing) ([]byte, error) {
	cut, err := rewritten(all, n.cut.Replace)
	if err != nil {
		return nil, err
	}
	// Marshal writes <, > and & as \u003c …, so that no script element can end there.
	return json.Marshal(map[string]any{"charts": cut, "labels": n.short()})
}

// rewritten is a chart's options, or several, as JSON has them, with each text replaced.
func rewritten(options any, by func(string) string) (any, error) {
	var v any
	text, err := json.Marshal(options)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the charts: %w", err)
	}
	return eachText(v, by), nil
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

// terms are the figures whose definitions a page shows at their names.
type terms struct {
	used  []*figure.Row
	other func(string) template.HTML // shows any other text
}

// titled finds a figure by any of its titles.
var titled = sync.OnceValue(func() map[string]*figure.Row {
	out := map[string]*figure.Row{}
	for _, r := range figure.Rows(figure.Any) {
		for _, t := range []string{r.Title, r.Head, r.Summary, r.Bar[1], plain.OneLine(r.Part)} {
			if t = strings.ToLower(t); len(t) > 3 && r.How != "" && out[t] == nil {
				out[t] = r
			}
		}
	}
	return out
})

// link shows a figure's name so that it opens its definition.
func (t *terms) link(title string) template.HTML {
	name, unit, _ := strings.Cut(title, " (")
	r := titled()[strings.ToLower(name)]
	if r == nil {
		return t.other(title)
	}
	t.used = explain.AppendNew(t.used, r)
	shown := template.HTMLEscapeString(name)
	if unit != "" {
		shown += " <span class=\"unit\">(" + template.HTMLEscapeString(unit) + "</span>"
	}
	return template.HTML(`<button type="button" class="def" popovertarget="def-` + r.Name + `">` + shown + `</button>`)
}

// ids gives elements ids that links can name: made of their titles, no two alike.
type ids struct{ taken map[string]bool }

func (i *ids) of(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	id := "x-" + strings.Join(words[:min(6, len(words))], "-")
	for i.taken[id] {
		id += "-"
	}
	i.taken[id] = true
	return id
}
