package schematest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
)

const module = "llmparity/"

// source is what a package's files have beyond its types.
type source struct {
	types     map[string]string   // comments
	fields    map[string]string   // comments, by Type.Field
	constants map[string][]string // values of string constants, by type
}

// source reads the files of a type's package once. Types of other modules have none.
func (g *generator) source(t reflect.Type) source {
	path := t.PkgPath()
	if src, ok := g.sources[path]; ok || t.Name() == "" || !strings.HasPrefix(path, module) {
		return src
	}
	src := source{types: map[string]string{}, fields: map[string]string{}, constants: map[string][]string{}}
	dir := filepath.Join(Root(g.t), filepath.FromSlash(strings.TrimPrefix(path, module)))
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		g.t.Fatalf("no Go files in %s (%v)", dir, err)
	}
	files := token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		check.Err(g.t, err)
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				src.declaration(d)
			}
		}
	}
	g.sources[path] = src
	return src
}

func (s *source) declaration(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.types[spec.Name.Name] = words(spec.Doc, d.Doc, spec.Comment)
			if t, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range t.Fields.List {
					for _, name := range f.Names {
						s.fields[spec.Name.Name+"."+name.Name] = words(f.Doc, f.Comment)
					}
				}
			}
		case *ast.ValueSpec:
			t, ok := spec.Type.(*ast.Ident)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil &&
						!slices.Contains(s.constants[t.Name], text) {
						s.constants[t.Name] = append(s.constants[t.Name], text)
					}
				}
			}
		}
	}
}

// words returns the first comment, in one line.
func words(comments ...*ast.CommentGroup) string {
	for _, c := range comments {
		if text := strings.Join(strings.Fields(c.Text()), " "); text != "" {
			return text
		}
	}
	return ""
}

// Root returns the module's folder, above the test's.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("no go.mod above the test's folder (%v)", err)
	return ""
}
