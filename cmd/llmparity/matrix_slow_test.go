//go:build slow

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A fault in a compiled kernel, with right weights: in the dequantisation of Q4_0, and in an operator in float32. The
// matrix names the cell of the model that runs it, and no other.
func TestMatrixNamesTheModelWithAWrongKernel(t *testing.T) {
	for _, c := range []struct {
		name, model, kernel, right, wrong string
		column                            int
		says                              string
	}{
		{"a block of Q4_0 with the scale of its neighbour", "tiny-q4_0", "down_one_q4_0_kernel",
			"= q_scale_ptr[(((v__1 * 512i) + (i32(threadIdx.x) * 8i)) + v)];",
			"= q_scale_ptr[(((v__1 * 512i) + (i32(threadIdx.x) * 8i)) + (v ^ 1i))];", 1, "WebLLM, Q4_0: differs"},
		{"a norm that divides by one value too few", "tiny", "norm_many_kernel", "1.280000e+02f", "1.270000e+02f", 0,
			"WebLLM, f32: differs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			own := ownCache(t)
			ownLibraries(t, own)
			path := packagedFor(t, own, c.model).Library.Path
			library := []byte(readFile(t, path))
			check(t, os.WriteFile(path, withShader(t, library, c.kernel, c.right, c.wrong), 0o644))
			onlyWrong(t, matrixRun(t, own), c.column, c.says)
		})
	}
}

// ownLibraries gives a cache copies of the compiled libraries, which a test may damage.
func ownLibraries(t *testing.T, own string) {
	t.Helper()
	dir := filepath.Join(own, "modellib")
	built, err := filepath.EvalSymlinks(dir)
	check(t, err)
	check(t, os.Remove(dir))
	check(t, os.CopyFS(dir, os.DirFS(built)))
}
