package browser

import (
	"context"
	"io/fs"
	"regexp"

	"llmparity/assets/page"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// digits matches those of a version.
var digits = regexp.MustCompile(`\d+(\.\d+)+`)

// Compare compares a recorded engine of a page with what is here: the hashes of its code, of its scripts and of the
// page, and the browser's version.
func Compare(ctx context.Context, was record.EngineInfo, c Config, code string, scripts fs.FS, to engine.Comparison) {
	to.Differ(record.BundlePart, was.Parts[record.BundlePart], code)
	if sum, err := page.SHA256(scripts); err == nil && was.Parts["page_sha256"] != "" {
		to.Differ("page_sha256", was.Parts["page_sha256"], sum)
	}
	path, err := c.Find()
	if err != nil {
		to.Differ("browser", was.Parts["browser"], "")
		return
	}
	is := engine.Version(ctx, fault.NoChrome, path, "--version")
	to.Differ("browser", digits.FindString(was.Parts["browser"]), digits.FindString(is.Version))
}
