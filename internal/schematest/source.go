package schematest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const module = "llmparity"

// source is what a package's files have beyond its types.
type source struct {
	types     map[string]string   // comments
	fields    map[string]string   // comments, by Type.Field
	constants map[string][]string // values of string constants, by type
}

func (g *generator) comment(t reflect.Type) string {
	if t.Name() == "" || !strings.HasPrefix(t.PkgPath(), module) {
		return ""
	}
	src, err := g.source(t.PkgPath())
	if err != nil {
		return ""
	}
	return src.types[t.Name()]
}

func (g *generator) fieldComment(t reflect.Type, field string) (string, error) {
	if t.Name() == "" || !strings.HasPrefix(t.PkgPath(), module) {
		return "", nil
	}
	src, err := g.source(t.PkgPath())
	return src.fields[t.Name()+"."+field], err
}

// source reads a package's files once.
func (g *generator) source(path string) (source, error) {
	if src, ok := g.sources[path]; ok {
		return src, nil
	}
	src := source{types: map[string]string{}, fields: map[string]string{}, constants: map[string][]string{}}
	root, err := Root()
	if err != nil {
		return src, err
	}
	dir := filepath.Join(root, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(path, module), "/")))
	paths, err := fs.Glob(os.DirFS(dir), "*.go")
	if err != nil || len(paths) == 0 {
		return src, fmt.Errorf("no Go files in %s (%v)", dir, err)
	}
	files := token.NewFileSet()
	for _, name := range paths {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, filepath.Join(dir, name), nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return src, err
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				src.declaration(d)
			}
		}
	}
	g.sources[path] = src
	return src, nil
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

// Root returns the module's folder, starting from the test's.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the test's folder")
		}
		dir = up
	}
}
