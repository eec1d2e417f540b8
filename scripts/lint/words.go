package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// refused are words that readers stumbled over, with what to write instead. The list grows.
var refused = []struct {
	words   *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)fore(tell|told)`), "predict, predicted, prediction"},
	{regexp.MustCompile(`(?i)gone on with`), "resumed"},
	{regexp.MustCompile(`(?i)\btells? of\b|\bis told of\b`), "reports, says"},
	{regexp.MustCompile(`(?i)\bnobody (tells|to)\b`), "unknown; no matching process"},
	{regexp.MustCompile(`(?i)\blet pass\b`), "tolerance"},
	{regexp.MustCompile(`(?i)\bdear\b`), "expensive"},
	{regexp.MustCompile(`(?i)\bnumbers of (the|a) (KV cache|keys|values)\b`), "dtype"},
}

// hardWords finds refused words in texts and identifiers. Records of older versions in testdata keep theirs.
func hardWords(root string) (out []string, err error) {
	skipped := []string{"node_modules", "testdata", "dist", "bin", "results"}
	err = walk(root, skipped, func(path string, text []byte) error {
		if strings.HasPrefix(path, "scripts/lint/") || bytes.IndexByte(text, 0) >= 0 {
			return nil
		}
		n := 0
		for line := range bytes.Lines(text) {
			n++
			for _, r := range refused {
				if found := r.words.Find(line); found != nil {
					out = append(out, fmt.Sprintf("%s:%d: %q is hard to read; write: %s", path, n, found, r.instead))
				}
			}
		}
		return nil
	})
	return out, err
}
