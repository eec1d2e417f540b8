package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// groups are the functions that say which tests of the command make test runs together. A test without one would run
// with each of them.
var groups = []string{"browserTest", "racedTest", "lightTest"}

// withoutGroup finds tests of the command that do not begin with their group. Slow ones are not run in groups.
func withoutGroup(file *ast.File, name string, text []byte) []string {
	if !strings.HasPrefix(name, "cmd/llmparity/") || !strings.HasSuffix(name, "_test.go") ||
		bytes.HasPrefix(text, []byte("//go:build slow")) {
		return nil
	}
	var out []string
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name == "TestMain" ||
			!strings.HasPrefix(f.Name.Name, "Test") && !strings.HasPrefix(f.Name.Name, "Fuzz") {
			continue
		}
		if !startsWith(f.Body, groups) {
			out = append(out, fmt.Sprintf("%s: %s must begin with one of %s", name, f.Name.Name,
				strings.Join(groups, ", ")))
		}
	}
	return out
}

// startsWith reports whether a function begins with a call of one of these functions.
func startsWith(body *ast.BlockStmt, names []string) bool {
	if len(body.List) == 0 {
		return false
	}
	first, ok := body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := first.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	called, ok := call.Fun.(*ast.Ident)
	return ok && slices.Contains(names, called.Name)
}
