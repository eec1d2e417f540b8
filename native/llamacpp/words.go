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

// prefix is what llama-server prints before a line: time since its start, and level.
var prefix = regexp.MustCompile(`^\d+(\.\d+)+ ([A-Z]) `)

// said returns lines without their prefixes.
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

// loadError returns the line with the reason; the lines after it only pass it on.
func loadError(lines []string) string {
	const mark = "error loading model: "
	for _, l := range slices.Backward(lines) {
		if _, reason, ok := strings.Cut(l, mark); ok {
			return reason
		}
	}
	return logs.LastWords(lines)
}

// refusals matches how llama.cpp's programs refuse an option or its value.
var refusals = regexp.MustCompile(`(?:invalid|unknown) argument: (\S+)|error while handling argument "([^"]+)"|unknown value for (-\S+): '([^']*)'`)

// missingFlag returns the option that a program refused, with its value; empty if it refused none.
func missingFlag(words, args []string) string {
	for _, line := range words {
		m := refusals.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		named := m[1] + m[2] + m[3]
		at := slices.Index(args, named)
		if m[3] != "" { // the program may use its long name
			at = slices.Index(args, m[4]) - 1
		}
		switch {
		case at < 0:
			return named
		case !strings.HasPrefix(named, "-"): // the program took a value for an option
			at = max(0, at-1)
		}
		if at+1 < len(args) && !strings.HasPrefix(args[at+1], "-") {
			return args[at] + " " + args[at+1]
		}
		return args[at]
	}
	return ""
}
