package llamacpp

import (
	"regexp"
	"strconv"
	"strings"
)

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
