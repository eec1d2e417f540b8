// Package flame writes profiles as a page: the roles of kernels, each engine's kernels, and flame graphs that can be
// searched and enlarged. It needs no network. It can't show a profile over time; trace files can.
package flame

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"llmparity/internal/depth"
)

//go:embed flame.js
var script string

//go:embed flame.css
var style string

var page = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{{.Title}}</title>
<style>{{.Base}}{{.Style}}</style>
<main>
<h1>{{.Title}}</h1>
<p>Width is time. What a function calls is below it. {{if .Compares}}Red: it takes more time of its own in a generation than before; blue: less; grey: no change beyond chance. {{end}}Select a function to enlarge it.</p>
<p><label>Find <input id="search" type="search"></label> <button id="back" type="button" hidden>Show all</button></p>
<p id="words" aria-live="polite"></p>
<div id="flame" class="flame"></div>
{{if .Compares}}<h2>Changes</h2>
{{if .Changes}}<table>
<tr><th>Function<th>Own time in a generation<th>Called by
{{range .Changes}}<tr><td>{{.Name}}<td>{{.By}}<td>{{.Callers}}
{{end}}</table>
{{else}}<p>No function changed beyond chance.</p>
{{end}}{{end}}</main>
<script type="application/json" id="data">{{.Data}}</script>
<script>{{.Script}}</script>
</html>
`))

// row is a change for people.
type row struct{ Name, By, Callers string }

func rowOf(c depth.Changed) row {
	at := strings.LastIndexByte(c.Stack, ';')
	callers := strings.Split(c.Stack[:max(at, 0)], ";")
	return row{c.Stack[at+1:], fmt.Sprintf("%+.3g ms", 1e3*c.By.Seconds()),
		strings.Join(callers[max(0, len(callers)-3):], " → ")}
}

// Page returns what writes a flame graph as a page in a style. before is that of an earlier profile; nil: none.
func Page(base string) func(w io.Writer, title string, stacks, before *depth.Stacks) error {
	return func(w io.Writer, title string, stacks, before *depth.Stacks) error {
		data := map[string]any{"stacks": stacks.Seen, "seconds": stacks.Every.Seconds()}
		var rows []row
		if before != nil {
			changes := map[string]float64{}
			for _, c := range depth.Changes(stacks, before) {
				changes[c.Stack] = c.By.Seconds()
				rows = append(rows, rowOf(c))
			}
			data["changes"] = changes
		}
		text, err := json.Marshal(data)
		if err != nil {
			return fmt.Errorf("writing the flame graph: %w", err)
		}
		return page.Execute(w, map[string]any{"Title": title, "Base": template.CSS(base), "Style": template.CSS(style),
			"Compares": before != nil, "Changes": rows[:min(20, len(rows))], "Data": template.JS(text),
			"Script": template.JS(script)})
	}
}
