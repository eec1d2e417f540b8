package history

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/safe"
	"llmparity/internal/kit/words"
)

// Size is the change for people: "−9.8%".
func (f *Finding) Size() string { return f.size(f.Percent) }

// Interval is its 95% interval for people.
func (f *Finding) Interval() string { return f.size(f.Low) + " to " + f.size(f.High) }

func (f *Finding) size(v float64) string {
	text := strconv.FormatFloat(v, 'f', 1, 64)
	if v > 0 {
		text = "+" + text
	}
	text = strings.Replace(text, "-", "−", 1)
	if f.Absolute {
		return text + " " + f.Unit
	}
	return text + "%"
}

// Sure is how likely chance alone shows as much, for people.
func (f *Finding) Sure() string {
	switch {
	case f.Verdict == Suspected:
		return "not sure yet"
	case f.Chance < 1e-9:
		return "by chance in less than 1 of 1,000,000,000 unchanged months"
	}
	return "by chance in 1 of " + thousands(1/f.Chance) + " unchanged months"
}

// thousands is a number with two digits that count.
func thousands(v float64) string {
	n := int64(v)
	for step := int64(10); step*10 <= n; step *= 10 {
		if n < step*100 {
			n = n / step * step
		}
	}
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Level is a value with its unit.
func Level(v float64, unit string) string {
	return strings.TrimSpace(strconv.FormatFloat(v, 'g', 4, 64) + " " + unit)
}

// Urgent reports whether somebody should look at a finding.
func (f *Finding) Urgent() bool { return f.Verdict == Regression || f.Verdict == Suspected }

// Where is the series of a finding.
func (f *Finding) Where() string { return f.Title + ", " + f.Cell + ", " + f.Machine }

// From is where a change began, in a line.
func (f *Finding) From() string {
	text := "since " + f.Since.Short() + " (" + f.Since.Time.UTC().Format("2006-01-02 15:04")
	if f.Since.Author != "" {
		text += ", " + f.Since.Author
	}
	text += ")"
	if f.Since.Subject != "" {
		text += " " + f.Since.Subject
	}
	if f.Last.SHA != f.Since.SHA {
		text += "; before: " + f.Last.Short()
	}
	return fault.OneLine(text)
}

// details are the lines below a finding's first.
func (f *Finding) details() []string {
	of := ""
	if f.Beside {
		of = ", of the ratio to the cells beside it"
	} else if f.Ratio {
		of = ", of the ratio to the control cell"
	}
	out := []string{
		fmt.Sprintf("%s → %s; %s (95%% CI %s%s), %s, %s", Level(f.Before, f.Unit), Level(f.After, f.Unit), f.Size(),
			f.Interval(), of, words.Count(f.Runs, "run"), f.Sure()), f.From()}
	if f.Why != "" {
		out = append(out, string(f.Verdict)+": "+fault.OneLine(f.Why))
	}
	for _, c := range f.Confirm {
		out = append(out, "confirm: "+c)
	}
	return out
}

// Headline is the report in a line.
func (r *Report) Headline() string {
	counts := map[Verdict]int{}
	for _, f := range r.Findings {
		counts[f.Verdict]++
	}
	var parts []string
	for _, v := range urgency {
		if n := counts[v]; n > 0 {
			parts = append(parts, v.count(n))
		}
	}
	text := "no change"
	if len(parts) > 0 {
		text = strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s in %d series of %s", text, r.Series, words.Count(r.Runs, "run"))
}

// count is so many changes with a verdict.
func (v Verdict) count(n int) string {
	switch v {
	case Regression, Improvement:
		return words.Count(n, string(v))
	case Machine, Environment:
		return fmt.Sprintf("%d explained by the %s", n, v)
	}
	return fmt.Sprintf("%d %s", n, v)
}

// Notes say what limits the report.
func (r *Report) Notes() (out []string) {
	if r.Short > 0 {
		out = append(out, fmt.Sprintf("%d of %d series have too few runs to show any change; %d runs are enough", r.Short,
			r.Series, r.Needed))
	}
	if r.Bare > 0 {
		out = append(out, fmt.Sprintf("%d series of times and rates have no control cell: a slower machine looks like a "+
			"regression; add runs with --control", r.Bare))
	}
	for _, b := range r.Broken {
		out = append(out, fmt.Sprintf("%s is left out: %s", b.Name, b.Why))
	}
	return append(out, fmt.Sprintf("By design, at most %.0f%% of dashboards without a change have an alarm in a month.",
		100*r.Month))
}

// Text writes the report for a terminal.
func (r *Report) Text(w io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintln(b, r.Headline())
	for _, f := range r.Findings {
		if !f.Urgent() {
			continue
		}
		fmt.Fprintf(b, "\n%s  %s  %s\n", f.ID, strings.ToUpper(string(f.Verdict)), f.Where())
		for _, line := range f.details() {
			fmt.Fprintln(b, "  "+line)
		}
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for i, f := range r.Findings {
		if f.Urgent() {
			continue
		}
		if i == 0 || r.Findings[i-1].Urgent() {
			fmt.Fprintln(t)
		}
		fmt.Fprintln(t, strings.Join([]string{f.ID, string(f.Verdict), f.Size(), "since " + f.Since.Short(),
			clean(f.Where()), clean(f.Why)}, "\t"))
	}
	_ = t.Flush()
	fmt.Fprintln(b)
	for _, n := range r.Notes() {
		fmt.Fprintln(b, n)
	}
	_, err := io.WriteString(w, safe.Text(b.String()))
	return err
}

// Markdown writes the report for a comment or a wiki.
func (r *Report) Markdown(w io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "**%s**\n", r.Headline())
	if len(r.Findings) > 0 {
		fmt.Fprint(b, "\n| | figure | change (95% CI) | since | |\n|---|---|---|---|---|\n")
	}
	for _, f := range r.Findings {
		more := []string{f.Sure()}
		if f.Why != "" {
			more = append(more, safe.Markdown(f.Why))
		}
		for _, c := range f.Confirm {
			more = append(more, "confirm: `"+strings.NewReplacer("`", "'", "|", `\|`).Replace(c)+"`")
		}
		cells := []string{string(f.Verdict) + " `" + f.ID + "`", safe.Markdown(f.Where()),
			f.Size() + " (" + f.Interval() + ")", safe.Markdown(f.From()), strings.Join(more, "; ")}
		for i := range cells {
			cells[i] = fault.OneLine(cells[i])
		}
		fmt.Fprintln(b, "| "+strings.Join(cells, " | ")+" |")
	}
	fmt.Fprintln(b)
	for _, n := range r.Notes() {
		fmt.Fprintln(b, "- "+safe.Markdown(n))
	}
	_, err := io.WriteString(w, safe.Text(b.String()))
	return err
}

// List writes the runs of a log, the newest last.
func (l *Log) List(w io.Writer, store string) error {
	if len(l.Runs)+len(l.Broken) == 0 {
		_, err := fmt.Fprintf(w, "No runs in %s.\n", store)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "COMMIT\tTIME\tMACHINE\tCELLS\tFIGURES\tSUBJECT")
	for i := range l.Runs {
		h := &l.Runs[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\n", clean(h.Commit.Short()), h.When().UTC().Format("2006-01-02 15:04"),
			clean(h.Machine), len(h.Cells), len(h.Figures), clean(h.Commit.Subject))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, b := range l.Broken {
		if _, err := fmt.Fprintf(w, "%s is left out: %s\n", clean(b.Name), b.Why); err != nil {
			return err
		}
	}
	return nil
}

func clean(text string) string { return safe.Text(fault.OneLine(text)) }

// Show writes a run with the figures of its cells: the newest of a commit, or the one of a file's name.
func (l *Log) Show(ctx context.Context, w io.Writer, name string) error {
	commit, err := Describe(ctx, name, "")
	if err != nil {
		return err
	}
	h := cmp.Or(l.Run(name), l.Run(commit.SHA))
	if h == nil {
		return fault.New(fault.Usage, "see llmparity history list", "no run of commit %s", name)
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s %s\n%s, %s\n", clean(h.Commit.Short()), clean(h.Commit.Subject),
		h.When().UTC().Format("2006-01-02 15:04"), clean(h.Machine))
	fmt.Fprintf(b, "file: %s\n", h.ID+suffix)
	if h.Folder != "" {
		fmt.Fprintf(b, "run: %s\n", clean(h.Folder))
	}
	for _, k := range slices.Sorted(maps.Keys(h.Environment)) {
		fmt.Fprintln(b, clean(k+": "+h.Environment[k]))
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\nCELL\tFIGURE\tMEDIAN\tLAUNCHES\tCONTROL\n")
	for _, s := range l.Series {
		for _, p := range s.Points {
			if &l.Runs[p.Run] != h {
				continue
			}
			control := ""
			if p.Control == p.Control { // not NaN
				control = Level(p.Control, s.Figure.Unit)
			} else if s.Cell.Fixed {
				control = "control cell"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", clean(s.Cell.Label), s.Figure.Title, Level(p.Value,
				s.Figure.Unit), p.N, control)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err = io.WriteString(w, b.String())
	return err
}
