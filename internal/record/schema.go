package record

import (
	"strconv"
	"strings"

	"llmparity/internal/fault"
)

// version is the version of a schema. Another major version can't be read; the additions of a minor version can be
// ignored.
type version struct{ major, minor int }

const schemaName = "llmparity.run/"

// parseSchema reads "llmparity.run/MAJOR" or "llmparity.run/MAJOR.MINOR".
func parseSchema(text string) (v version, ok bool) {
	numbers, ok := strings.CutPrefix(text, schemaName)
	if !ok {
		return v, false
	}
	major, minor, has := strings.Cut(numbers, ".")
	var err error
	if v.major, err = strconv.Atoi(major); err != nil || v.major < 1 {
		return v, false
	}
	if has {
		if v.minor, err = strconv.Atoi(minor); err != nil || v.minor < 0 {
			return v, false
		}
	}
	return v, true
}

// checkSchema refuses schemas that can't be read. If newer, the folder may hold more than is read, and it warns.
func (r *Run) checkSchema(path string) (newer bool, err error) {
	ours, _ := parseSchema(Schema)
	theirs, ok := parseSchema(r.Meta.Schema)
	switch {
	case !ok:
		return false, fault.New(fault.BadRecord, "read it with the version that wrote it",
			"%s: unknown schema %q (this version reads %q)", path, r.Meta.Schema, Schema)
	case theirs.major != ours.major:
		return false, fault.New(fault.BadRecord, "read it with llmparity "+writer(r.Meta.Tool)+" or newer",
			"%s: unsupported schema %q (this version reads %q)", path, r.Meta.Schema, Schema)
	case theirs.minor > ours.minor:
		r.Warnings = append(r.Warnings, Warnf("newer-schema", "written by a newer llmparity (%s, schema %s; this "+
			"version reads %s); unknown data is ignored", writer(r.Meta.Tool), r.Meta.Schema, Schema))
		return true, nil
	}
	return false, nil
}

func writer(t Tool) string {
	if t.Version == "" {
		return "(unknown version)"
	}
	return t.Version
}

// known reports whether this version understands anything in the line.
func (e *entry) known() bool { return *e != entry{T: e.T, Time: e.Time, Attempt: e.Attempt} }

// unknown reports whether to ignore a line of a newer version. It warns once.
func (b *builder) unknown(e *entry) bool {
	if !b.newer || e.known() {
		return false
	}
	if !b.left {
		b.left = true
		b.run.Warnings = append(b.run.Warnings, Warning{Code: "lines-left-out",
			Text: "the journal has lines of unknown kinds, which are ignored"})
	}
	return true
}
