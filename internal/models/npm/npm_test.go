package npm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
)

const name = "@mlc-ai/web-llm"

func TestFileRefuses(t *testing.T) {
	quiet := func(string) {}
	for _, c := range []struct {
		version string
		env     map[string]string
		kind    fault.Kind
		want    string
	}{
		{"latest", nil, fault.Usage, `"latest" is not a version`},
		{"0.2.80 --registry=x", nil, fault.Usage, "is not a version"},
		{"../0.2.80", nil, fault.Usage, "is not a version"},
		// Nothing listens there, and npm's own cache is empty.
		{"0.2.80", map[string]string{"npm_config_registry": "http://127.0.0.1:9/", "npm_config_cache": t.TempDir(),
			"npm_config_fetch_retries": "0"}, fault.NoBundle, "this needs a network connection once"},
		{"0.2.80", map[string]string{"PATH": t.TempDir()}, fault.NoBundle, "not on PATH"},
	} {
		t.Run(c.version, func(t *testing.T) {
			for key, value := range c.env {
				t.Setenv(key, value)
			}
			dir := t.TempDir()
			_, err := File(t.Context(), dir, name, c.version, "lib/index.js", quiet)
			if fault.Of(err) != c.kind || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want class %s with %q", err, c.kind, c.want)
			}
			left, _ := filepath.Glob(filepath.Join(dir, "npm", "*", "*"))
			if left = append(left, child.Scratches(os.Getpid())...); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestExtract(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "p.tgz")
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	out := tar.NewWriter(zipped)
	for _, f := range []tar.Header{
		{Name: "package/../../escape", Typeflag: tar.TypeReg},
		{Name: "package/lib/link.js", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		{Name: "package/lib/index.js", Typeflag: tar.TypeReg, Size: 4},
	} {
		check.Err(t, out.WriteHeader(&f))
		if f.Size > 0 {
			if _, err := out.Write([]byte("code")); err != nil {
				t.Fatal(err)
			}
		}
	}
	check.Err(t, errors.Join(out.Close(), zipped.Close(), os.WriteFile(archive, b.Bytes(), 0o600)))
	var text strings.Builder
	if err := extract(archive, "package/lib/index.js", &text); err != nil || text.String() != "code" {
		t.Errorf("%q %v", &text, err)
	}
	for _, missing := range []string{"package/lib/other.js", "package/lib/link.js"} { // a link is no file
		if err := extract(archive, missing, io.Discard); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("%s: %v", missing, err)
		}
	}
}

// What npm prints is a list of versions; without a registry there is none.
func TestVersions(t *testing.T) {
	dir := t.TempDir()
	check.Script(t, `echo '["0.2.9", "0.2.10", "0.3.0-rc1", "../x"]'`, dir, "npm")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if got, err := Versions(t.Context(), name); err != nil || strings.Join(got, " ") != "0.2.9 0.2.10 0.3.0-rc1" {
		t.Errorf("%v %v", got, err)
	}
	check.Script(t, `exit 1`, dir, "npm")
	if _, err := Versions(t.Context(), name); fault.Of(err) != fault.NoBundle {
		t.Errorf("%v", err)
	}
}
