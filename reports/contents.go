package reports

import (
	"html/template"
	"regexp"
)

// entry is a line of the contents.
type entry struct {
	ID    string
	Title template.HTML
}

var sectionHeading = regexp.MustCompile(`<h2 id="([a-z0-9-]+)"[^>]*>([^<]*)</h2>`)

// contents lists the headings of sections that are there: those that have nothing to show write nothing.
func contents(sections string) []entry {
	var out []entry
	for _, m := range sectionHeading.FindAllStringSubmatch(sections, -1) {
		out = append(out, entry{m[1], template.HTML(m[2])})
	}
	return out
}
