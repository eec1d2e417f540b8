package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// texts are the kinds of files that people read.
var texts = []string{".go", ".md", ".yaml", ".yml", ".js", ".mjs", ".css", ".html", ".py", ".json", ""}

var unread = []string{"node_modules", "testdata", "dist", "bin", "results"}

// hardWords finds refused words in texts and identifiers. Records of older versions in testdata keep theirs.
func hardWords(root string) (out []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (slices.Contains(unread, d.Name()) || d.Name()[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || !slices.Contains(texts, filepath.Ext(path)) || strings.HasPrefix(path, "scripts/lint/"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			return err
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
