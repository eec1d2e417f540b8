package main

import (
	"bytes"
	"fmt"
	"strings"

	"llmparity/internal/warning"
)

// warningsPage is the page of warnings.
func warningsPage() []byte {
	var b bytes.Buffer
	b.WriteString("# Warnings\n\n" +
		"A warning is a remark that may change a conclusion; everything else is a note.\n" +
		"At its top, a report says how many warnings there are, and lists them. `llmparity report DIR --details` also prints the notes.\n\n" +
		"| code | what it means | what to do |\n|---|---|---|\n")
	for _, r := range warning.Table {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Code, r.Means, r.Do)
	}
	b.WriteString("\nThe record (`journal.jsonl`) holds finer codes than these. Reports show each of them as one of the warnings above:\n\n" +
		"| warning | codes in records |\n|---|---|\n")
	for _, r := range warning.Table {
		if len(r.Records) > 0 {
			fmt.Fprintf(&b, "| `%s` | `%s` |\n", r.Code, strings.Join(r.Records, "`, `"))
		}
	}
	fmt.Fprintf(&b, "\nThese codes are notes: `%s`.\n", strings.Join(warning.Notes, "`, `"))
	return b.Bytes()
}
