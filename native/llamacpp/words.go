package llamacpp

import (
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"llmparity/internal/fault"
	"llmparity/native/logs"
)

func signalled(err error) bool {
	var e *exec.ExitError
	if !errors.As(err, &e) {
		return false
	}
	status, ok := e.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// prefix is what llama-server writes before a line: time since its start and level.
var prefix = regexp.MustCompile(`^\d+(\.\d+)+ ([A-Z]) `)

// said gives lines without their prefixes.
func said(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, fault.OneLine(prefix.ReplaceAllString(l, "")))
	}
	return out
}

func contains(lines []string, what string) bool {
	return slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, what) })
}

// loadError is the line that gives the reason; the lines behind it only pass it on.
func loadError(lines []string) string {
	const mark = "error loading model: "
	for _, l := range slices.Backward(lines) {
		if _, reason, ok := strings.Cut(l, mark); ok {
			return reason
		}
	}
	return logs.LastWords(lines)
}

// refusals are how a program of llama.cpp's says that it does not know an option, or not its value.
var refusals = regexp.MustCompile(`(?:invalid|unknown) argument: (\S+)|error while handling argument "([^"]+)"|unknown value for (-\S+): '([^']*)'`)

// missingFlag is the option that a program refused, with the value it was given; empty where it refused none.
func missingFlag(words, args []string) string {
	for _, line := range words {
		m := refusals.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		named := m[1] + m[2] + m[3]
		at := slices.Index(args, named)
		if m[3] != "" { // it may go by its longer name
			at = slices.Index(args, m[4]) - 1
		}
		switch {
		case at < 0:
			return named
		case !strings.HasPrefix(named, "-"): // a value that it takes for an argument of its own
			at = max(0, at-1)
		}
		if at+1 < len(args) && !strings.HasPrefix(args[at+1], "-") {
			return args[at] + " " + args[at+1]
		}
		return args[at]
	}
	return ""
}
