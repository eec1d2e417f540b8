//go:build slow

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"llmparity/browser"
	"llmparity/browser/webllm"
	"llmparity/compare"
	"llmparity/compare/matrix"
	"llmparity/internal/engine"
	"llmparity/internal/models"
)

// matrixContext is the preset's.
const matrixContext = 512

// matrixRun runs the preset on the built-in model and a quantised form, in f32, with a cache of its own.
func matrixRun(t *testing.T, own string) *exec.Cmd {
	t.Helper()
	cmd := program(t, "run", "--preset", "matrix", "--engines", "webllm,llamacpp", "--models", "tiny,tiny-q4_0",
		"--dtype", "f32", "--adapter", "swiftshader")
	cmd.Env = append(cmd.Env, "LLMPARITY_CACHE="+own)
	return cmd
}

// packagedFor makes WebLLM's package of a built-in model in a cache, so that a test can damage it.
func packagedFor(t *testing.T, own, name string) webllm.Package {
	t.Helper()
	path, err := models.Path(name)
	check(t, err)
	m, err := models.Open(t.Context(), path, matrixContext)
	check(t, err)
	w := webllm.New(webllm.Config{Settings: browser.Settings{Adapter: string(browser.SwiftShader)}},
		engine.Settings{Cache: own})
	check(t, w.Prepare(t.Context(), m, func(s string) { t.Log(s) }))
	p, ok := w.Prepared(m)
	if !ok {
		t.Fatalf("%s has no package", name)
	}
	return p
}

// fieldsOf has the words of a matrix by engine, in the order of its columns.
func fieldsOf(m *matrix.Matrix) map[string][]matrix.Field {
	out := map[string][]matrix.Field{}
	for _, r := range m.Rows {
		out[r.Engine] = r.Fields
	}
	return out
}

// onlyWrong fails unless one cell of WebLLM is wrong, that of a column, and the output says so.
func onlyWrong(t *testing.T, cmd *exec.Cmd, column int, says string) {
	t.Helper()
	stdout, stderr, code := output(t, cmd)
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	m := compare.Runs(recorded(t, cmd.Dir)).Support
	if m == nil {
		t.Fatalf("no matrix: %s", stdout)
	}
	for name, fields := range fieldsOf(m) {
		for i, f := range fields {
			want := matrix.OK
			if name == webllm.Name && i == column {
				want = matrix.Differs
			}
			t.Logf("%s, %s: %s: %s", name, m.Columns[i].Weights, f.Word(), f.Text)
			if f.State != want {
				t.Errorf("%s, %s: %s, want %s", name, m.Columns[i].Weights, f.Word(), want)
			}
		}
	}
	mentions(t, stdout, "✗ differs", says, "differs from llmparity's reference implementation: scores up to")
}

// Two values of a norm change places in one of two packages, with its checksum put right. The matrix names its cell.
func TestMatrixNamesTheModelWithAWrongWeight(t *testing.T) {
	browserTest(t)
	t.Parallel()
	own := ownCache(t)
	swapNorm(t, filepath.Dir(packagedFor(t, own, "tiny-q4_0").Dir))
	onlyWrong(t, matrixRun(t, own), 1, "WebLLM, Q4_0: differs")
}

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
