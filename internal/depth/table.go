package depth

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// Table prints the roles of all engines beside each other: for each phase their time, its share and the bytes of
// operands, then what is held. Below are each engine's own kernels that take most. Three engines fit 100 columns.
func Table(w io.Writer, profiles map[string]Profile, engines []string, most int) error {
	var b strings.Builder
	for _, phase := range phases(profiles) {
		roleTable(&b, phase, profiles, engines)
	}
	heldTable(&b, profiles, engines)
	for _, engine := range engines {
		momentTable(&b, engine, profiles[engine])
		kernelTable(&b, engine, profiles[engine], most)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// phases lists the phases of all profiles that take time, in the order of a generation.
func phases(profiles map[string]Profile) (out []string) {
	for _, p := range profiles {
		for _, r := range p.Rows {
			if r.timed() && !slices.Contains(out, r.Phase) {
				out = append(out, r.Phase)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return order(a) - order(b) })
	return out
}

func order(phase string) int { return slices.Index([]string{"load", "prefill", "decode"}, phase) }

// timed reports whether a row says what an engine did, and how long.
func (r Row) timed() bool { return !r.held() && r.Phase != Adapter }

// held reports whether a row says what is held, and takes no time.
func (r Row) held() bool { return r.Role == Memory || slices.Contains(Moments, r.Phase) }

// grid has lines of a name and, for each engine, as many cells as it has headings.
type grid struct {
	title    string
	of       string // what lines are of
	engines  []string
	headings []string
	lines    [][]string
}

// write has the engines' names above their cells.
func (g grid) write(b *strings.Builder) {
	fmt.Fprintln(b, g.title)
	head := []string{g.of}
	for range g.engines {
		head = append(head, g.headings...)
	}
	all := append([][]string{head}, g.lines...)
	widths := make([]int, len(head))
	for _, line := range all {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	n := len(g.headings)
	top := strings.Repeat(" ", widths[0])
	for i, engine := range g.engines {
		of := widths[1+i*n : 1+i*n+n]
		width := 2 * n
		for _, cell := range of {
			width += cell
		}
		if own := utf8.RuneCountInString(engine) + 2; own > width {
			widths[1+i*n], width = widths[1+i*n]+own-width, own
		}
		top += fmt.Sprintf("%*s", width, engine)
	}
	fmt.Fprintln(b, top)
	for _, line := range all {
		text := fmt.Sprintf("%-*s", widths[0], line[0])
		for i, cell := range line[1:] {
			text += fmt.Sprintf("  %*s", widths[i+1], cell)
		}
		fmt.Fprintln(b, strings.TrimRight(text, " "))
	}
	fmt.Fprintln(b)
}

// roleTable has the engines that have rows of a phase.
func roleTable(b *strings.Builder, phase string, profiles map[string]Profile, engines []string) {
	engines = slices.DeleteFunc(slices.Clone(engines), func(e string) bool {
		return !slices.ContainsFunc(profiles[e].Rows, func(r Row) bool { return r.Phase == phase && r.timed() })
	})
	g := grid{phase + ", by role; MiB of the kernels' operands", "role", engines, []string{"ms", "share", "MiB"}, nil}
	for _, role := range Roles {
		line, any := []string{string(role)}, false
		for _, e := range engines {
			var self time.Duration
			var bytes int64
			found := false
			for _, r := range profiles[e].Rows {
				if r.Phase == phase && r.Role == role {
					self, bytes, found = self+r.Self, bytes+r.Bytes, true
				}
			}
			if !found {
				line = append(line, "–", "", "")
				continue
			}
			any = true
			share := 100 * float64(self) / float64(max(1, profiles[e].Sum(phase)))
			line = append(line, ms(self), fmt.Sprintf("%.1f%%", share), mib(bytes))
		}
		if any {
			g.lines = append(g.lines, line)
		}
	}
	sum, clock := []string{"sum"}, []string{"of the clock"}
	for _, e := range engines {
		sum = append(sum, ms(profiles[e].Sum(phase)), "", "")
		clock = append(clock, ofWall(profiles[e], phase), "", "")
	}
	g.lines = append(g.lines, sum)
	if strings.Join(clock[1:], "") != "" {
		g.lines = append(g.lines, clock)
	}
	g.write(b)
}

// ofWall says what part of a phase's time by the clock the rows explain.
func ofWall(p Profile, phase string) string {
	wall := p.Wall[phase]
	if wall <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100*float64(p.Sum(phase))/float64(wall))
}

// heldTable shows what each role holds, at the last moment that an engine reports.
func heldTable(b *strings.Builder, profiles map[string]Profile, engines []string) {
	g, of := grid{"held, by role", "role", nil, []string{"MiB"}, nil}, map[string]map[Role]int64{}
	for _, e := range engines {
		at := map[Role]string{}
		for _, r := range profiles[e].Rows {
			if !r.held() || r.Role == Memory {
				continue
			}
			if of[e] == nil {
				of[e], g.engines = map[Role]int64{}, append(g.engines, e)
			}
			if now, before := slices.Index(Moments, r.Phase), slices.Index(Moments, at[r.Role]); now > before {
				at[r.Role], of[e][r.Role] = r.Phase, 0
			} else if now < before {
				continue
			}
			of[e][r.Role] += r.Bytes
		}
	}
	if len(g.engines) == 0 {
		return
	}
	for _, role := range Roles {
		line, any := []string{string(role)}, false
		for _, e := range g.engines {
			any, line = any || of[e][role] > 0, append(line, mib(of[e][role]))
		}
		if any {
			g.lines = append(g.lines, line)
		}
	}
	g.write(b)
}

// momentTable has what an engine's process holds at each moment.
func momentTable(b *strings.Builder, engine string, p Profile) {
	g := grid{"held by the process, MiB", "moment", []string{engine}, nil, nil}
	bytes := map[[2]string]int64{}
	for _, r := range p.Rows {
		if r.Role == Memory && slices.Contains(Moments, r.Phase) {
			bytes[[2]string{r.Phase, r.Kernel}] += r.Bytes
			if !slices.Contains(g.headings, r.Kernel) {
				g.headings = append(g.headings, r.Kernel)
			}
		}
	}
	for _, at := range Moments {
		line, any := []string{at}, false
		for _, what := range g.headings {
			size, ok := bytes[[2]string{at, what}]
			any, line = any || ok, append(line, mib(size))
		}
		if any {
			g.lines = append(g.lines, line)
		}
	}
	if len(g.lines) > 0 {
		g.write(b)
	}
}

// mostIn names the layer that takes most of a kernel's time, with its share.
func (p Profile) mostIn(kernel Row) string {
	layers := map[int]time.Duration{}
	for _, r := range p.Rows {
		if r.Phase == kernel.Phase && r.Kernel == kernel.Kernel && r.Role == kernel.Role {
			layers[r.Layer] += r.Self
		}
	}
	most := slices.MaxFunc(slices.Sorted(maps.Keys(layers)), func(a, b int) int {
		return cmp.Compare(layers[a], layers[b])
	})
	switch {
	case most == NoLayer:
		return "–"
	case len(layers) == 1:
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d (%.0f%%)", most, 100*float64(layers[most])/float64(max(1, kernel.Self)))
}

func kernelTable(b *strings.Builder, engine string, p Profile, most int) {
	all := slices.DeleteFunc(Kernels(p.Rows), func(r Row) bool { return !r.timed() })
	fmt.Fprintf(b, "%s, its own kernels\n", engine)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "phase\trole\tms\tcalls\tmost in layer\tkernel")
	for _, k := range all[:min(most, len(all))] {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", k.Phase, k.Role, ms(k.Self), k.Calls, p.mostIn(k), k.Kernel)
	}
	_ = t.Flush() // a strings.Builder takes everything
	for _, note := range p.Notes {
		fmt.Fprintf(b, "note: %s\n", note)
	}
	fmt.Fprintln(b)
}

func ms(d time.Duration) string { return short(float64(d) / 1e6) }

func mib(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return short(float64(bytes) / (1 << 20))
}

// short has three digits, and all those before the point.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
