package llamacpp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

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
	var found []string
	for _, dir := range []string{filepath.Dir(program), filepath.Join(filepath.Dir(program), "..", "lib")} {
		for _, pattern := range []string{"lib*.so*", "lib*.dylib", "*.dll"} {
			some, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is valid
			found = append(found, slices.DeleteFunc(
				some, func(path string) bool { return !itsOwn(filepath.Base(path)) })...)
		}
	}
	sums := map[string]string{} // by file, which may have several names
	for _, path := range found {
		file, err := filepath.EvalSymlinks(path)
		if err != nil {
			return ""
		}
		if sums[file] != "" {
			continue
		}
		if sums[file], err = cache.HashFile(file); err != nil {
			return ""
		}
	}
	return sumOf(sums)
}

// itsOwn recognises llama.cpp's libraries by name.
func itsOwn(name string) bool {
	for _, part := range []string{"llama*", "ggml*", "mtmd*"} {
		for _, before := range []string{"", "lib"} {
			if ok, _ := filepath.Match(before+part, name); ok { // the pattern is valid
				return true
			}
		}
	}
	return false
}

// sumOf combines the hashes of several files, regardless of their folder.
func sumOf(sums map[string]string) string {
	if len(sums) == 0 {
		return ""
	}
	var lines []string
	for file, sum := range sums {
		lines = append(lines, filepath.Base(file)+" "+sum)
	}
	slices.Sort(lines)
	h := sha256.New()
	for _, line := range lines {
		fmt.Fprintln(h, line)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// parts returns what else identifies a program.
func (i identity) parts() map[string]string {
	parts := map[string]string{}
	if i.libraries != "" {
		parts["libraries_sha256"] = i.libraries
	}
	return parts
}
