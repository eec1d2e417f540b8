package record

import (
	"fmt"

	"llmparity/internal/fault"
)

// parseSchema reads "llmparity.run/MAJOR" or "llmparity.run/MAJOR.MINOR". Another major version can't be read; the
// additions of a minor version can be ignored.
func parseSchema(text string) (major, minor int, ok bool) {
	n, _ := fmt.Sscanf(text+".0", "llmparity.run/%d.%d", &major, &minor)
	return major, minor, n == 2
}

// checkSchema refuses schemas that can't be read. It warns of a newer one: the folder may hold more than is read.
func (r *Run) checkSchema(path string) error {
	ourMajor, ourMinor, _ := parseSchema(Schema)
	major, minor, ok := parseSchema(r.Meta.Schema)
	switch {
	case !ok:
		return fault.New(fault.BadRecord, "read it with the version that wrote it",
			"%s: unknown schema %q (this version reads %q)", path, r.Meta.Schema, Schema)
	case major != ourMajor:
		return fault.New(fault.BadRecord, "read it with llmparity "+writer(r.Meta.Tool)+" or newer",
			"%s: unsupported schema %q (this version reads %q)", path, r.Meta.Schema, Schema)
	case minor > ourMinor:
		r.newer = true
		r.Warnings = append(r.Warnings, Warnf("newer-schema", "written by a newer llmparity (%s, schema %s; this "+
			"version reads %s); unknown data is ignored", writer(r.Meta.Tool), r.Meta.Schema, Schema))
	}
	return nil
}

func writer(t Tool) string {
	if t.Version == "" {
		return "(unknown version)"
	}
	return t.Version
}
