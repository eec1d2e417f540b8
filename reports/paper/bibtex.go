package paper

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/explain"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
	"llmparity/reports/plain"
)

// BibTeX has an entry for each run of a result, and one for each llmparity that measured. It needs no other package
// than BibTeX has.
func BibTeX(res *compare.Result) string {
	var runs, tools []string
	for i, r := range res.Runs {
		if r.Tool.GoOS == "" { // another program's rows
			continue
		}
		runs = append(runs, runEntry(res, i))
		tools = explain.AppendNew(tools, toolEntry(r))
	}
	all := append(runs, tools...)
	seen := map[string]int{}
	for i, t := range all { // a key may occur once in a file
		key, rest, _ := strings.Cut(t, ",")
		if seen[key]++; seen[key] > 1 {
			all[i] = fmt.Sprintf("%s-%d,%s", key, seen[key], rest)
		}
	}
	return strings.Join(all, "\n")
}

func runEntry(res *compare.Result, i int) string {
	r := res.Runs[i]
	own := &compare.Result{Runs: res.Runs}
	for _, c := range res.Cells {
		if c.Run == i {
			own.Cells = append(own.Cells, c)
		}
	}
	note := []string{"Measured with " + toolWords(record.Tool{Version: r.Tool.Version}),
		prefixed("commit ", r.Tool.Commit), prefixed("plan SHA-256 ", r.Plan)}
	note = append(note, own.Distinct(programWords)...)
	note = append(note, own.Distinct(func(c *compare.Cell) string {
		return prefixed(c.Spec.Model.Name+" SHA-256 ", c.Spec.Model.SHA256)
	})...)
	title := r.Name
	sides := slices.ContainsFunc(res.Runs, func(o compare.Run) bool { return o.Against != "" })
	if len(res.Runs) == 1 || sides {
		title = answer.Of(res).Title
	}
	if sides {
		title += " (" + res.RunName(i) + ")"
	}
	return entry("llmparity-run-"+notKey.ReplaceAllString(r.Name, "-")+r.Started.Format("-20060102-150405"),
		[2]string{"key", "llmparity run " + r.Name},
		[2]string{"title", title},
		[2]string{"howpublished", "Measurements, llmparity run " + r.Name + " of " +
			r.Started.Format("2006-01-02 15:04:05 MST")},
		[2]string{"year", r.Started.Format("2006")},
		[2]string{"note", plain.Joined("; ", note...)})
}

// programWords name an engine's program with its whole hash.
func programWords(c *compare.Cell) string {
	e := c.Engine
	if e == nil || c.Foreign() {
		return ""
	}
	return plain.Joined(", ", strings.TrimSpace(c.Title()+" "+words.Version(e.Version)), prefixed("commit ", e.Commit),
		prefixed("SHA-256 ", cmp.Or(e.SHA256, e.Parts["bundle_sha256"])))
}

func toolEntry(r compare.Run) string {
	return entry("llmparity", [2]string{"author", "The llmparity authors"},
		[2]string{"title", "llmparity: compare a language model in the browser and natively"},
		[2]string{"year", r.Started.Format("2006")},
		[2]string{"note", plain.Joined("; ", "Version "+strings.Trim(r.Tool.Version, "()"),
			prefixed("commit ", r.Tool.Commit), map[bool]string{true: "with local changes"}[r.Tool.Modified],
			prefixed("program SHA-256 ", r.Tool.SHA256))})
}

func prefixed(name, value string) string {
	if value == "" {
		return ""
	}
	return name + value
}

// notKey matches what a key cannot have.
var notKey = regexp.MustCompile(`[^A-Za-z0-9.]+`)

// entry is an entry of type misc, which needs no field. Braces around a value keep its capitals, and a name whole.
func entry(key string, fields ...[2]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "@misc{%s,\n", key)
	for _, f := range fields {
		fmt.Fprintf(&b, "  %-12s = {{%s}},\n", f[0], latex.Replace(plain.Line(f[1])))
	}
	b.WriteString("}\n")
	return b.String()
}

// latex escapes what LaTeX would read as a command. BibTeX also counts braces that have a backslash.
var latex = strings.NewReplacer(`\`, `\textbackslash{}`, "{", `\textbraceleft{}`, "}", `\textbraceright{}`, "$", `\$`,
	"&", `\&`, "#", `\#`, "%", `\%`, "_", `\_`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`)
