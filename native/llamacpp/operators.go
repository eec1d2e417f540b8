package llamacpp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/depth"
	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/native/logs"
)

// OperatorsName is the program that times operators, made of scripts/llamacpp-operators.cpp. It lies beside
// llama-server and is linked to the libraries of the same build: another build would compute in another way.
const OperatorsName = "llmparity-operators"

var _ engine.DeepProfiler = (*session)(nil)

// Deep generates in a program of its own, which loads the model with the server's settings and times each operator.
func (s *session) Deep(ctx context.Context, r engine.Request, prefix string) (depth.Profile, error) {
	srv, done, err := s.own.Use()
	if err != nil {
		return depth.Profile{}, err
	}
	defer done()
	path, why := s.operators()
	if why != "" {
		return depth.Profile{Notes: []string{why}}, engine.ErrShallow
	}
	ids, err := s.prepare(ctx, srv, r)
	if err != nil {
		return depth.Profile{}, s.explain(ctx, srv, err)
	}
	trace := prefix + ".trace.json"
	p, err := s.timed(ctx, path, ids, s.operatorFlags(r, trace))
	switch {
	case ctx.Err() != nil:
		return depth.Profile{}, fmt.Errorf("timing operators: %w", ctx.Err())
	case err != nil: // it is of another version, or two models do not fit: stacks tell something
		return depth.Profile{Notes: []string{fmt.Sprintf("operators are not timed one by one, because %s failed: %v; if it "+
			"is old, %s", path, err, operatorsAdvice)}}, engine.ErrShallow
	}
	p.Files = []string{trace}
	p.Notes = append(p.Notes, buffers(srv.read.Said())...)
	p.Notes = append(p.Notes, "each operator is computed alone, so none is fused with another, and "+
		"the time to start its threads is part of it")
	return p, nil
}

const operatorsAdvice = "run `scripts/setup llamacpp-operators`"

// operators returns the program's path, or why there is none.
func (s *session) operators() (path, why string) {
	if s.config.in != nil {
		return "", "operators are not timed in a container; leave out --container"
	}
	server := s.binary.path
	if real, err := filepath.EvalSymlinks(server); err == nil {
		server = real
	}
	path = filepath.Join(filepath.Dir(server), OperatorsName)
	_, err := exec.LookPath(path)
	builds, _ := filepath.EvalSymlinks(filepath.Join(s.config.Cache, "llamacpp")) // missing: not ours
	switch {
	case err == nil:
		return path, ""
	case builds != "" && strings.HasPrefix(server, builds+string(filepath.Separator)):
		return "", "operators are not timed one by one, because " + path + " is missing; " + operatorsAdvice
	}
	return "", fmt.Sprintf("operators are not timed one by one, because %s has no %s beside it; %s and name that build with "+
		"--llama-server, or compile scripts/llamacpp-operators.cpp with your build's libraries", server, OperatorsName,
		operatorsAdvice)
}

// operatorFlags are the program's arguments: the server's settings.
func (s *session) operatorFlags(r engine.Request, trace string) (args []string) {
	c := s.config
	said := map[string]int{"tokens": r.MaxTokens, "threads": c.threads(), "batch-threads": c.batchThreads(),
		"gpu-layers": c.GPULayers, "context": s.context, "batch": c.Batch, "ubatch": c.UBatch}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if said[name] > 0 {
			args = append(args, name, strconv.Itoa(said[name]))
		}
	}
	end := map[bool]string{false: "off", true: "on"}[r.IgnoreEOS]
	return append(args, "model", s.model.Path, "cache-k", c.cacheK(), "cache-v", c.cacheV(),
		"flash", c.flashAttention(), "mmap", cmp.Or(c.Mmap, "on"), "ignore-eos", end, "trace", trace)
}

// timed runs the program and reads what it prints.
func (s *session) timed(ctx context.Context, path string, ids []int, args []string) (depth.Profile, error) {
	var in strings.Builder
	for _, id := range ids {
		fmt.Fprintln(&in, id)
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Stdin = s.config.environment(""), strings.NewReader(in.String())
	var out bytes.Buffer
	tail := &child.Tail{Max: 16 << 10}
	cmd.Stdout, cmd.Stderr = &out, tail
	p, err := child.Start(ctx, cmd)
	if err != nil {
		return depth.Profile{}, err
	}
	if <-p.Done(); p.Err() != nil {
		return depth.Profile{}, fmt.Errorf("%s: %s", p.Exit(), logs.LastWords(tail.Lines(200)))
	}
	return readOperators(out.Bytes())
}

// readOperators reads what the program prints: lines of fields, which its source explains.
func readOperators(text []byte) (depth.Profile, error) {
	p := depth.Profile{Wall: map[string]time.Duration{}, Plain: map[string]time.Duration{}}
	in := bufio.NewScanner(bytes.NewReader(text))
	for line := 1; in.Scan(); line++ {
		f := strings.Split(in.Text(), "\t")
		texts := map[string]int{"wall": 2, "op": 5, "wait": 3}[f[0]] // fields before the numbers
		numbers := make([]int64, 0, 3)
		for _, field := range f[min(texts, len(f)):] {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil || n < 0 {
				return p, fmt.Errorf("line %d: want a number of at least 0, got %q", line, field)
			}
			numbers = append(numbers, n)
		}
		switch {
		case f[0] == "wall" && len(numbers) == 2:
			p.Wall[f[1]], p.Plain[f[1]] = time.Duration(numbers[0]), time.Duration(numbers[1])
		case f[0] == "op" && len(numbers) == 4:
			row := operator(f[2], f[3], f[4])
			row.Phase, row.Calls, row.Self, row.Bytes = f[1], numbers[0], time.Duration(numbers[1]), numbers[2]
			p.Add(row)
			p.Notes = append(p.Notes, interrupted(row, time.Duration(numbers[3]), p.Wall[f[1]])...)
		case f[0] == "wait" && len(numbers) == 2:
			p.Add(depth.Row{Phase: f[1], Layer: depth.NoLayer, Role: depth.Wait, Kernel: f[2], Calls: numbers[0],
				Self: time.Duration(numbers[1])})
		default:
			return p, fmt.Errorf("line %d: unknown: %s", line, fault.OneLine(in.Text()))
		}
	}
	if err := in.Err(); err != nil {
		return p, err
	}
	if len(p.Rows) == 0 {
		return p, fmt.Errorf("it printed no operator")
	}
	return p, nil
}

// interrupted warns if a single slow call gives an operator its place in the table.
func interrupted(r depth.Row, slowest, wall time.Duration) []string {
	if r.Calls < 4 || slowest < r.Self/2 || slowest < wall/100 {
		return nil
	}
	layer := ""
	if r.Layer != depth.NoLayer {
		layer = fmt.Sprintf(" of layer %d", r.Layer)
	}
	return []string{fmt.Sprintf("%s%s, %s: one of %d calls took %.3g of %.3g ms, as if something else ran meanwhile",
		r.Kernel, layer, r.Phase, r.Calls, slowest.Seconds()*1e3, r.Self.Seconds()*1e3)}
}

// layerForm is where a tensor's name has its layer: ffn_gate-3, cache_k_l3 (view).
var layerForm = regexp.MustCompile(`-(\d+)\b|_l(\d+)\b`)

// operator describes an operator by the tensor that it computes. The layer's number goes out of the name.
func operator(op, tensor, operands string) depth.Row {
	row := depth.Row{Layer: depth.NoLayer}
	if at := layerForm.FindStringSubmatchIndex(tensor); at != nil {
		m := layerForm.FindStringSubmatch(tensor)
		if n, err := strconv.Atoi(m[1] + m[2]); err == nil {
			row.Layer, tensor = n, tensor[:at[0]]+tensor[at[1]:]
		}
	}
	row.Role = operatorRole(op, tensor)
	if strings.HasPrefix(tensor, "node_") { // ggml's own number, which differs between graphs
		tensor = ""
	}
	row.Kernel = strings.Join(slices.DeleteFunc([]string{op, tensor, operands}, func(s string) bool { return s == "" }),
		" ")
	return row
}

// operatorRole is the role that llama.cpp's name of a tensor tells, else that of the operator.
func operatorRole(op, tensor string) depth.Role {
	switch {
	case op == "SAMPLE":
		return depth.Sampling
	case strings.HasPrefix(tensor, "cache_"):
		return depth.KVWrite
	case strings.Contains(tensor, "norm"):
		return depth.Norm
	case strings.HasPrefix(tensor, "ffn_"), tensor == "l_out": // the sum at a layer's end
		return depth.FeedForward
	}
	if role := depth.RoleOf(tensor); role != depth.Other {
		return role
	}
	if op == "GET_ROWS" || op == "SET_ROWS" { // of what is neither the embedding nor the cache
		return depth.Copy
	}
	return depth.RoleOf(op)
}

// buffers says what memory each backend has, by the log.
func buffers(l logs.Load) (notes []string) {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(l.Buffers)) {
		for _, backend := range slices.Sorted(maps.Keys(l.Buffers[kind])) {
			parts = append(parts, fmt.Sprintf("%s %s %s", kind, backend, words.Size(int64(l.Buffers[kind][backend]))))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{"buffers, by llama.cpp's log: " + strings.Join(parts, ", ")}
}
