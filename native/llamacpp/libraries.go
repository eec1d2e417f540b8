package llamacpp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

	"llmparity/internal/cache"
)

// LibrariesSHA256 is the sum over llama.cpp's own shared libraries that lie beside a program of it, or in lib beside
// its folder: where there are any, what computes is in them and not in the program. Empty: there are none, or one can't
// be read. Libraries that lie elsewhere are not seen, nor are others' than llama.cpp's.
func LibrariesSHA256(program string) string {
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		return ""
	}
	var found []string
	for _, dir := range []string{filepath.Dir(program), filepath.Join(filepath.Dir(program), "..", "lib")} {
		for _, pattern := range []string{"lib*.so*", "lib*.dylib", "*.dll"} {
			some, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are well formed
			found = append(found, slices.DeleteFunc(
				some, func(path string) bool { return !itsOwn(filepath.Base(path)) })...)
		}
	}
	sums := map[string]string{} // by file: one has several names
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

// itsOwn tells llama.cpp's libraries by their names.
func itsOwn(name string) bool {
	for _, part := range []string{"llama*", "ggml*", "mtmd*"} {
		for _, before := range []string{"", "lib"} {
			if ok, _ := filepath.Match(before+part, name); ok { // the patterns are well formed
				return true
			}
		}
	}
	return false
}

// sumOf is one sum of several files', whatever folder they are in.
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

// parts are what else a program is known by.
func (i identity) parts() map[string]string {
	parts := map[string]string{}
	if i.libraries != "" {
		parts["libraries_sha256"] = i.libraries
	}
	return parts
}
