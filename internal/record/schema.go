package record

import (
	"fmt"
	"strconv"
	"strings"

	"llmparity/internal/fault"
)

// version is a schema's: what a major one changes can't be read by readers of another; what a minor one adds can be
// left out.
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

// checkSchema refuses what can't be read. newer tells that the folder may hold more than is read, of which it warns.
func (r *Run) checkSchema(path string) (newer bool, err error) {
	ours, _ := parseSchema(Schema) // our own
	theirs, ok := parseSchema(r.Meta.Schema)
	switch {
	case !ok:
		return false, fault.New(fault.BadRecord, "read it with the version that wrote it",
			"%s: schema %q, this version reads %q",
			path, r.Meta.Schema, Schema)
	case theirs.major != ours.major:
		return false, fault.New(fault.BadRecord, "read it with llmparity "+writer(r.Meta.Tool)+
			", which wrote it, or a newer one",
			"%s: schema %q, this version reads %q", path, r.Meta.Schema, Schema)
	case theirs.minor > ours.minor:
		r.Warnings = append(r.Warnings, Warning{Code: "newer-schema",
			Text: fmt.Sprintf("the folder was written by a newer llmparity "+
				"(%s, schema %s; this version reads %s): what it has that this version does not know is left out",
				writer(r.Meta.Tool),
				r.Meta.Schema, Schema)})
		return true, nil
	}
	return false, nil
}

func writer(t Tool) string {
	if t.Version == "" {
		return "of an unknown version"
	}
	return t.Version
}

// known tells whether the line says anything that this version understands.
func (e *entry) known() bool { return *e != entry{T: e.T, Time: e.Time, Attempt: e.Attempt} }

// unknown tells whether a line is to be left out: of a newer version's kind. The first is warned of.
func (b *builder) unknown(e *entry) bool {
	if !b.newer || e.known() {
		return false
	}
	if !b.left {
		b.left = true
		b.run.Warnings = append(b.run.Warnings, Warning{Code: "lines-left-out",
			Text: "the journal has lines of kinds that this version does not know; they are left out"})
	}
	return true
}
