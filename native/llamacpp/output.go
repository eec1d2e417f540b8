package llamacpp

import (
	"bytes"
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// chunk is a piece of a program's output and when it was read.
type chunk struct {
	text []byte
	at   time.Time
}

// pieces separates a text from the mark that is printed after it. A chunk is held back while it may be part of the
// mark, or the newline that the program prints before the mark if the model ended the text. It keeps its time.
type pieces struct {
	ctx  context.Context // once it is done, output is dropped
	mark string
	give func(text string, at time.Time)
	held []chunk
	over chan struct{} // closed when the mark was read
	at   time.Time     // when it was read; zero: not yet
}

func newPieces(ctx context.Context, mark string, give func(text string, at time.Time)) *pieces {
	return &pieces{ctx: ctx, mark: mark, give: give, over: make(chan struct{})}
}

// Write is called by one goroutine.
func (p *pieces) Write(b []byte) (int, error) {
	at := time.Now()
	if p.ctx.Err() != nil || !p.at.IsZero() {
		return len(b), nil
	}
	p.held = append(p.held, chunk{bytes.Clone(b), at})
	all := p.text()
	if before, _, ok := strings.Cut(all, p.mark); ok {
		p.cut(len(before))
		p.at = at
		close(p.over)
		return len(b), nil
	}
	begins := len(all) - max(unfinished(all, p.mark), unfinished(all, "\n"+p.mark))
	for n := 0; len(p.held) > 0; p.held = p.held[1:] {
		if n += len(p.held[0].text); n > begins {
			break
		}
		p.give(string(p.held[0].text), p.held[0].at)
	}
	return len(b), nil
}

// end hands on what is still held. If the model ended the text, a final newline is the program's and is dropped.
func (p *pieces) end(byModel bool) {
	if all := p.text(); byModel && strings.HasSuffix(all, "\n") {
		p.cut(len(all) - 1)
	}
	for _, c := range p.held {
		p.give(string(c.text), c.at)
	}
	p.held = nil
}

// cut truncates what is held to a number of bytes.
func (p *pieces) cut(left int) {
	var kept []chunk
	for _, c := range p.held {
		if c.text = c.text[:min(left, len(c.text))]; len(c.text) > 0 {
			kept = append(kept, c)
		}
		left -= len(c.text)
	}
	p.held = kept
}

func (p *pieces) text() string {
	var b strings.Builder
	for _, c := range p.held {
		b.Write(c.text)
	}
	return b.String()
}

// unfinished returns the length of the longest suffix of text that is a prefix of mark.
func unfinished(text, mark string) int {
	for n := min(len(text), len(mark)); n > 0; n-- {
		if strings.HasSuffix(text, mark[:n]) {
			return n
		}
	}
	return 0
}

// perfLine matches the timings that a program of llama.cpp prints at its end. The function that prints them has been
// named llama_print_timings, llama_perf_context_print and common_perf_print.
var perfLine = regexp.MustCompile(`^\s*\w+:\s+(load|sampling|samplers|sample|prompt eval|eval|total) time =\s*([0-9.]+) ms(?: /\s*([0-9]+) (tokens|runs))?`)

// perf stores the figures of such a line under the program's own words: eval_ms, eval_runs, prompt_eval_tokens.
func perf(line string, into map[string]float64) {
	m := perfLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	if m[1] == "total" {
		return // includes the time in which it waited for us
	}
	name := strings.ReplaceAll(m[1], " ", "_")
	if v, err := strconv.ParseFloat(m[2], 64); err == nil {
		into[name+"_ms"] = v
	}
	if v, err := strconv.ParseFloat(m[3], 64); err == nil {
		into[name+"_"+m[4]] = v
	}
}

// rates adds the speeds that the program prints, except for a time of 0.
func rates(figures map[string]float64) {
	for name, of := range map[string][2]string{
		"prompt_eval_tokens_per_second": {"prompt_eval_tokens", "prompt_eval_ms"},
		"eval_tokens_per_second":        {"eval_runs", "eval_ms"},
	} {
		if n, ms := figures[of[0]], figures[of[1]]; n > 0 && ms > 0 {
			figures[name] = n / ms * 1e3
		}
	}
}
