package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/truth"
)

// The program takes memory in processes of its own, and judges what its sources made of it.
func TestTruthOfProcesses(t *testing.T) {
	out, errs, code := output(t, program(t, "truth", "--only", "processes", "--size", "32MiB", "--repeats", "2", "--json", "--quiet"))
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var r truth.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Schema != truth.Schema || r.Size != 32<<20 || r.Machine == "" || len(r.Parts) != 1 || len(r.Contradictions) > 0 {
		t.Fatalf("%+v", r)
	}
	m := r.Parts[0].Matrix
	for _, l := range m.Lines {
		if l.ID != "both/PSS" {
			continue
		}
		for i, c := range l.Cells {
			want := truth.Sees
			if strings.Contains(m.Kinds[i].ID, "untouched") {
				want = truth.Blind
			}
			if c.Verdict != want || len(c.Runs) != 2 {
				t.Errorf("%s: %s after %d repeats, want %s", m.Kinds[i].Name, c.Verdict, len(c.Runs), want)
			}
		}
		return
	}
	t.Error("nobody sums up PSS")
}

func TestTruthUsage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("# A page without a table\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, say := range map[string]string{
		"--size 100":                       "100 can't be taken",
		"--size 16MiB":                     "multiple of 16MiB from 32MiB",
		"--size 2GiB":                      "to 1GiB",
		"--size lots":                      `"lots" is no size`,
		"--repeats 0":                      "--repeats 0",
		"--only gpu":                       `--only "gpu"`,
		"--json --markdown":                "json markdown",
		"--update " + page:                 "add --markdown",
		"--markdown --update " + page:      "has no place for the table",
		"--markdown --update /nonexistent": "can't be read",
		"--markdown --only browser --update " + page: "--only asks for a part",
		"--adapter none": "there is no adapter",
		"more":           "usage",
	} {
		out, errs, code := output(t, program(t, append([]string{"truth"}, strings.Fields(args)...)...))
		if code != int(fault.Usage) || out != "" || !strings.Contains(lastLine(errs), say) {
			t.Errorf("%s: exit code %d, %q, want %d and %q", args, code, errs, fault.Usage, say)
		}
	}
}

// What is not as expected has an exit code of its own, names the first such cell, and is not put into documentation.
func TestTruthThatIsContradicted(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	text := truth.BlockBegin + "\nas it was\n" + truth.BlockEnd + "\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := truth.Empty()
	r.Contradictions = []string{"process RSS moved by 1.00 MiB"}
	f := truthFlags{markdown: true, update: page}
	var out strings.Builder
	err := f.tell(r, &out)
	if fault.Code(err) != int(fault.Untrue) || !strings.Contains(err.Error(), "process RSS moved by 1.00 MiB") {
		t.Errorf("exit code %d of %v", fault.Code(err), err)
	}
	if now, err := os.ReadFile(page); err != nil || string(now) != text || out.Len() == 0 {
		t.Errorf("the page has become %q (%v); %d bytes were printed", now, err, out.Len())
	}
	r.Contradictions = nil
	out.Reset()
	if err := f.tell(r, &out); err != nil || out.Len() > 0 {
		t.Errorf("%v, %q", err, out.String())
	}
	if now, err := os.ReadFile(page); err != nil || string(now) != r.Markdown() {
		t.Errorf("the page has become %q (%v)", now, err)
	}
}
