package llamacpp

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"llmparity/internal/cache"
)

// LibrariesSHA256 hashes llama.cpp's own shared libraries beside a program or in lib beside its folder. If there are
// any, the computation is in them and not in the program. It returns "" if there are none or one is unreadable.
// Libraries in other places and of other projects are not covered.
func LibrariesSHA256(program string) string {
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		return ""
	}
	sums := map[string]string{} // by file, which may have several names
	for _, dir := range []string{filepath.Dir(program), filepath.Join(filepath.Dir(program), "..", "lib")} {
		entries, _ := os.ReadDir(dir) // missing: it has none
		for _, e := range entries {
			if !itsOwn.MatchString(e.Name()) {
				continue
			}
			file, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
			if err == nil && sums[file] == "" {
				sums[file], err = cache.HashFile(file)
			}
			if err != nil {
				return ""
			}
		}
	}
	if len(sums) == 0 {
		return ""
	}
	var lines []string
	for file, sum := range sums {
		lines = append(lines, filepath.Base(file)+" "+sum+"\n")
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:])
}

// itsOwn matches the names of llama.cpp's libraries.
var itsOwn = regexp.MustCompile(`^((lib)?(llama|ggml|mtmd).*\.dll|lib(llama|ggml|mtmd).*\.(so.*|dylib))$`)
