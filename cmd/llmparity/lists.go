package main

import (
	"regexp"
	"slices"
	"strings"

	"llmparity/internal/kinds"
)

// listFlags are the flags of run that take several values, and what one of them looks like: by that a value is told
// from a plan's file, which may stand behind them.
func listFlags() map[string]*regexp.Regexp {
	number := regexp.MustCompile(`^[0-9]+$`)
	word := regexp.MustCompile(`^[a-z]+[0-9]+(_[0-9a-z]+)?$`)
	out := map[string]*regexp.Regexp{
		"input-len": number, "output-len": number, "batch-size": number, "concurrency": number, "contexts": number,
		"thread-counts": number,
		"prompt-toks":   number, "gen-toks": number, "seqlens": number,
		"dtype": word, "kv-cache-dtype": word, "start": regexp.MustCompile(`^(cold|warm)$`),
		"engines": regexp.MustCompile(`^(` + strings.Join(kinds.All.Names(), "|") + `)$`),
		"models":  regexp.MustCompile(`^.+$`),
	}
	for _, name := range kinds.All.VersionAxes() {
		out[strings.ReplaceAll(name, "_", "-")] = regexp.MustCompile(`^[0-9]+(\.[0-9]+)+\S*$`)
	}
	return out
}

// planFile is what a plan's file is called: never a value of a list.
var planFile = regexp.MustCompile(`(?i)\.ya?ml$`)

// joinLists has lists that are written with spaces, as in --concurrency 1 2 4, written with commas, which is what flags
// know. A value that doesn't look like one of the list's, or is called as plans are, ends it.
func joinLists(args []string) []string {
	if len(args) == 0 || args[0] != "run" {
		return args
	}
	lists := listFlags()
	var out []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(out, args[i:]...)
		}
		name, assigned, has := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		form := lists[name]
		if !strings.HasPrefix(args[i], "--") || form == nil || !has && i+1 == len(args) {
			out = append(out, args[i])
			continue
		}
		values := []string{assigned}
		if !has { // what follows is its value, whatever that looks like
			i++
			values[0] = args[i]
		}
		for i+1 < len(args) && element(form, args[i+1]) {
			i++
			values = append(values, args[i])
		}
		out = append(out, "--"+name+"="+joined(values))
	}
	return out
}

// element tells whether an argument is a value, or some with commas, of a list.
func element(form *regexp.Regexp, arg string) bool {
	if strings.HasPrefix(arg, "-") || planFile.MatchString(arg) {
		return false
	}
	parts := slices.DeleteFunc(strings.Split(arg, ","), func(s string) bool { return s == "" })
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(s string) bool { return !form.MatchString(s) })
}

// joined puts commas between values that may have some at their ends already: people write 1, 2, 4.
func joined(values []string) string {
	if len(values) == 1 {
		return values[0] // one that is alone is the flag's to judge
	}
	for i, v := range values {
		values[i] = strings.Trim(v, ",")
	}
	return strings.Join(values, ",")
}
