package llamacpp

import (
	"regexp"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/logs"
)

// signalled reports whether a signal ended a process, by how it ended.
func signalled(how string) bool { return strings.HasPrefix(how, "signal: ") }

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

// notLoaded returns why a program could not load its model, if its words say so; nil if not.
func notLoaded(who string, m engine.Model, words []string, how string) error {
	last := logs.LastWords(words)
	switch {
	case logs.OutOfMemory(words...):
		return engine.Fail(record.OOM, "%s ran out of memory loading %s (%s): %s", who, m.Path, how, last)
	case contains(words, "failed to load model"), contains(words, "error loading model"):
		for _, l := range words { // the lines after the reason only pass it on
			if _, reason, ok := strings.Cut(l, "error loading model: "); ok {
				last = reason
			}
		}
		return &engine.Failure{Class: record.BadModel, Err: fault.New(fault.BadModel,
			"check the file, or use a newer llama.cpp", "%s cannot load %s: %s", who, m.Path, last)}
	}
	return nil
}

// newLogReader reads the log of a llama.cpp program. on sees each line without its prefix.
func newLogReader(on func(line string)) *logs.Loads {
	return logs.NewLoads(4096, func(line string) string { // lines with sizes are short
		line = strings.TrimRight(prefix.ReplaceAllString(line, ""), "\r")
		on(line)
		return line
	})
}
