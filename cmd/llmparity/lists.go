package main

import (
	"regexp"
	"slices"
	"strings"

	"llmparity/internal/kinds"
	"llmparity/internal/record"
)

// figureName is what a figure may be called: not a path, as of a run's folder.
var figureName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// listFlags are the flags of a command that take several values, with the form of a value. It distinguishes a value
// from the argument that may follow.
func listFlags(command string) map[string]*regexp.Regexp {
	switch command {
	case "report", "compare":
		return map[string]*regexp.Regexp{"figures": figureName}
	case "run":
	default:
		return nil
	}
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

// planFile is the name of a plan, which is never a value of a list.
var planFile = regexp.MustCompile(`(?i)\.ya?ml$`)

// joinLists replaces the blanks of lists such as --concurrency 1 2 4 by commas, which the flags understand. An argument
// that has another form, or the name of a plan, ends a list. --figures without a value gets one.
func joinLists(args []string) []string {
	if len(args) == 0 {
		return args
	}
	lists := listFlags(args[0])
	if lists == nil {
		return args
	}
	var out []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(out, args[i:]...)
		}
		name, assigned, has := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		form := lists[name]
		if !strings.HasPrefix(args[i], "--") {
			form = nil
		}
		if form == figureName && !has && (i+1 == len(args) || strings.HasPrefix(args[i+1], "-") ||
			record.IsRun(args[i+1])) {
			out = append(out, args[i]+"="+allFigures)
			continue
		}
		if form == nil || !has && i+1 == len(args) {
			out = append(out, args[i])
			continue
		}
		values := []string{assigned}
		if !has { // the next argument is the value, whatever its form
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

// element reports whether an argument is a value of a list, or several with commas.
func element(form *regexp.Regexp, arg string) bool {
	if strings.HasPrefix(arg, "-") || planFile.MatchString(arg) || form == figureName && record.IsRun(arg) {
		return false
	}
	parts := slices.DeleteFunc(strings.Split(arg, ","), func(s string) bool { return s == "" })
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(s string) bool { return !form.MatchString(s) })
}

// joined puts commas between values, which may end in one already: 1, 2, 4.
func joined(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	for i, v := range values {
		values[i] = strings.Trim(v, ",")
	}
	return strings.Join(values, ",")
}
