// Command lint finds what neither gofmt nor vet looks for: lines that are too long, imports against the arrows
// between packages, and notices of the work of others that are out of date. It follows no build tags and resolves no
// names.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

func main() {
	found, packages, err := findings(".")
	stale, unread := staleNotices()
	missing, unlisted := unlisted(packages)
	hard, unopened := hardWords(".")
	found, err = slices.Concat(found, stale, missing, hard), errors.Join(err, unread, unlisted, unopened)
	for _, line := range found {
		fmt.Fprintln(os.Stderr, line)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || len(found) > 0 {
		os.Exit(1)
	}
}

// findings checks every Go file below a folder, and lists the folders that have some.
func findings(root string) (out, packages []string, err error) {
	skipped := []string{"node_modules", "testdata"}
	err = walk(root, skipped, func(path string, text []byte) error {
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
		if err == nil {
			out = append(out, tooLong(files.File(file.FileStart), file, text)...)
			out = append(out, againstArrows(file, filepath.ToSlash(path))...)
			out = append(out, withoutGroup(file, filepath.ToSlash(path), text)...)
			packages = append(packages, filepath.ToSlash(filepath.Dir(path)))
		}
		return err
	})
	return out, slices.Compact(packages), err
}

// texts are the kinds of files that people read.
var texts = []string{".go", ".md", ".yaml", ".yml", ".js", ".mjs", ".css", ".html", ".py", ".json", ""}

// walk reads every text below a folder, but for hidden folders and those that are skipped.
func walk(root string, skipped []string, do func(path string, text []byte) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (slices.Contains(skipped, d.Name()) || d.Name()[0] == '.'):
			return fs.SkipDir
		case !d.Type().IsRegular() || !slices.Contains(texts, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return do(path, text)
	})
}

// columns is how many a line may have; a tab takes four, and gofmt's padding one. A string of more than so many is not
// broken for them.
const columns, unbroken = 120, 40

var padding = regexp.MustCompile(` +`)

// tooLong finds lines over the limit, other than those with long strings and those that the compiler reads.
func tooLong(of *token.File, file *ast.File, text []byte) []string {
	var out []string
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		width := utf8.RuneCountInString(padding.ReplaceAllString(line, " ")) + 3*strings.Count(line, "\t")
		if width > columns && !strings.HasPrefix(line, "//go:") && longest(of, file, n, len(line)) <= unbroken {
			out = append(out, fmt.Sprintf("%s:%d: %d columns; the limit is %d", of.Name(), n, width, columns))
		}
	}
	return out
}

// longest is how many bytes of a line the longest string has there.
func longest(of *token.File, file *ast.File, line, length int) (most int) {
	begin := of.LineStart(line)
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
			most = max(most, int(min(s.End(), begin+token.Pos(length))-max(s.Pos(), begin)))
		}
		return true
	})
	return most
}
