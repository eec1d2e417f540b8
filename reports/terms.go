package reports

import (
	"html/template"
	"slices"
	"strings"
	"sync"
	"unicode"

	"llmparity/internal/figure"
)

// terms are the figures whose definitions a page shows at their names.
type terms struct {
	used  []*figure.Row
	other func(string) template.HTML // shows any other text
}

// titled finds a figure by any of its titles.
var titled = sync.OnceValue(func() map[string]*figure.Row {
	out := map[string]*figure.Row{}
	for _, r := range figure.Rows(figure.Any) {
		for _, t := range []string{r.Title, r.Head, r.Summary, r.Bar[1], oneLine(r.Part)} {
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
	if !slices.Contains(t.used, r) {
		t.used = append(t.used, r)
	}
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
