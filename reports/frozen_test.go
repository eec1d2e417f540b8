package reports_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/internal/kit/check"
	"llmparity/reports"
)

// frozen holds v, as JSON, against testdata/frozen/NAME.txt.
//
// A line is an object: where it is, and its fields, separated by tabs. Long lists of numbers are their number, their
// first and last, and a checksum. Explanations that depend on no record are left out. Where sections are named the
// others are a checksum each.
func frozen(t *testing.T, name string, v any, sections ...string) {
	t.Helper()
	golden(t, filepath.Join("frozen", name+".txt"), func(w io.Writer) error {
		_, err := io.WriteString(w, frozenText(t, v, sections...))
		return err
	})
}

// unfrozen are fields that no record changes, or that other tests hold: definitions, machines, what a cell was asked.
var unfrozen = []string{"how", "sees", "blind", "title", "tool", "environment", "checklist", "spec", "policy",
	"judged", "schema", "dir"}

// keys are those of an object in a list of its like, which go without saying: only a colon is left of them.
var keys = regexp.MustCompile(`(^|,)[^=,]*=`)

var temporary = regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `[^\s",:]*/`)

func frozenText(t *testing.T, v any, sections ...string) string {
	t.Helper()
	var text bytes.Buffer
	write := func() error { return reports.JSON(&text, v) }
	if res, ok := v.(*compare.Result); ok {
		write = func() error { return reports.ResultJSON(&text, res) }
	}
	check.Err(t, write())
	var plain any
	check.Err(t, json.Unmarshal(text.Bytes(), &plain))
	var b strings.Builder
	freeze(&b, "", plain, "", sections)
	return temporary.ReplaceAllString(b.String(), "-/")
}

// freeze writes v, which is at path; named is the field that the path has already. Of a result and of its cells the
// sections are written, unless there are none, and of all else a checksum.
func freeze(b *strings.Builder, path string, v any, named string, sections []string) {
	switch v := v.(type) {
	case map[string]any:
		line := ""
		var below []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list, isList := v[key].([]any)
			if slices.Contains(unfrozen, key) || v[key] == nil || isList && len(list) == 0 || key == named {
				continue
			}
			if text, ok := inLine(v[key]); ok {
				line += "\t" + key + " " + text
			} else {
				below = append(below, key)
			}
		}
		if line != "" {
			fmt.Fprintf(b, "%s%s\n", path, line)
		}
		for _, key := range below {
			at := strings.TrimPrefix(path+"."+key, ".")
			switch {
			case len(sections) == 0 || slices.Contains(sections, key):
				freeze(b, at, v[key], "", nil)
			case at == "cells":
				freeze(b, at, v[key], "", sections)
			default:
				var all strings.Builder
				freeze(&all, at, v[key], "", nil)
				fmt.Fprintf(b, "%s\t= %d bytes, CRC %08x\n", at, all.Len(), crc32.ChecksumIEEE([]byte(all.String())))
			}
		}
	case []any:
		seen := map[string]int{}
		for _, e := range v {
			name, key := nameOf(e)
			seen[name]++
			if seen[name] > 1 || name == "" {
				name += "#" + strconv.Itoa(seen[name])
			}
			freeze(b, path+"["+name+"]", e, key, sections)
		}
	default:
		text, _ := inLine(v)
		fmt.Fprintf(b, "%s\t= %s\n", path, text)
	}
}

// nameOf is what tells an element of a list from the others, whatever its place, and which of its fields that is.
func nameOf(v any) (name, key string) {
	o, ok := v.(map[string]any)
	if !ok {
		return "", ""
	}
	for _, key := range []string{"label", "name", "figure", "code", "axis", "role"} {
		if name, ok := o[key].(string); ok && name != "" {
			return name, key
		}
	}
	return "", ""
}

// inLine is a value as a field of its object's line; false where it has lines of its own.
func inLine(v any) (string, bool) {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatFloat(v, 'f', -1, 64), true
		}
		return strconv.FormatFloat(v, 'g', 9, 64), true
	case string:
		return strings.Trim(strconv.Quote(v), `"`), true
	case []any:
		const few = 16
		var all []string
		for _, e := range v {
			text, ok := inLine(e)
			if _, sentence := e.(string); sentence || !ok {
				return "", false
			}
			if _, object := e.(map[string]any); object {
				text = keys.ReplaceAllString(text, "$1")
			}
			all = append(all, text)
		}
		if text := strings.Join(all, " "); len(all) > few {
			return fmt.Sprintf("%d from %s to %s, CRC %08x", len(all), all[0], all[len(all)-1],
				crc32.ChecksumIEEE([]byte(text))), true
		}
		return "[" + strings.Join(all, " ") + "]", true
	case map[string]any:
		var all []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if v[key] == nil {
				continue
			}
			n, ok := v[key].(float64)
			if !ok {
				return "", false
			}
			text, _ := inLine(n)
			all = append(all, key+"="+text)
		}
		return strings.Join(all, ","), true
	}
	return fmt.Sprint(v), true
}
