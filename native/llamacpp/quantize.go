package llamacpp

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/kit/whole"
	"llmparity/native/logs"
	"llmparity/native/program"
)

// QuantizeVariable is an environment variable that names llama-quantize.
const QuantizeVariable = "LLMPARITY_LLAMA_QUANTIZE"

// Quantizer runs llama.cpp's llama-quantize, which writes a model with weights of another type.
type Quantizer struct {
	Path  string // where the user says that it is; empty: it is searched for
	Cache string // the cache folder, where scripts/setup puts it
	Again bool   // whether weights that are quantised already may be quantised again
}

// Find searches for the program as engines do for theirs.
func (q Quantizer) Find() (string, error) {
	return program.Program{Names: []string{"llama-quantize"}, Build: "llamacpp/current/bin", Flag: "--llama-quantize",
		Variable: QuantizeVariable, Kind: fault.NoLlamaServer,
		Do: "run `scripts/setup llamacpp-tools`, put llama.cpp's llama-quantize on PATH, or set --llama-quantize",
	}.Find(q.Path, q.Cache)
}

// typeLine matches a line of the program's help about a type: "  15  or  Q4_K_M  :  4.58G, +0.1754 ppl".
var typeLine = regexp.MustCompile(`^\s*\d+\s+or\s+([A-Za-z0-9_]{1,40})\s*:`)

// quantizedTypes are the types that the program's help lists.
func quantizedTypes(help []string) (out []string) {
	for _, line := range help {
		if m := typeLine.FindStringSubmatch(line); m != nil {
			out = append(out, m[1])
		}
	}
	return out
}

// Type returns the program's spelling of a type.
func (q Quantizer) Type(ctx context.Context, path, name string) (string, error) {
	help, _ := talk(ctx, path, "--help") // it ends with an error
	types := quantizedTypes(help)
	if len(types) == 0 {
		return "", fault.New(fault.NoLlamaServer, "name llama.cpp's program", "%s is not llama-quantize: --help prints %q", path,
			logs.LastWords(help))
	}
	for _, known := range types {
		if strings.EqualFold(known, name) {
			return known, nil
		}
	}
	return "", fault.New(fault.Usage, strings.TrimSpace(nearest.Question(strings.ToUpper(name), types)+" available: "+
		strings.Join(types, ", ")), "--to: unknown type %q", name)
}

// Write writes the model at in to out, with weights of a type, in one step. It returns what the program warns of.
func (q Quantizer) Write(ctx context.Context, path, in, out, to string) (warnings []string, err error) {
	args := []string{}
	if q.Again {
		args = append(args, "--allow-requantize")
	}
	err = whole.Fill(out, func(f *os.File) error {
		lines, err := talk(ctx, path, append(args, in, f.Name(), to)...)
		for _, l := range lines {
			if _, words, ok := strings.Cut(l, "WARNING: "); ok {
				warnings = append(warnings, words)
			}
		}
		if err != nil && ctx.Err() == nil {
			return fault.New(fault.BadModel, "see what llama.cpp says", "%s is not quantized (%v): %s", in, err,
				logs.LastWords(lines))
		}
		return err
	})
	return warnings, err
}

// talk runs a program to its end and returns what it prints.
func talk(ctx context.Context, path string, args ...string) ([]string, error) {
	cmd := exec.Command(path, args...)
	tail := &child.Tail{Max: 1 << 20}
	cmd.Stdout, cmd.Stderr, cmd.Env = tail, tail, Config{}.environment("")
	p, err := child.Start(ctx, cmd)
	if err != nil {
		return nil, fault.New(fault.NoLlamaServer, "name llama.cpp's program", "%s does not start: %v", path, err)
	}
	<-p.Done()
	lines := tail.Lines(1 << 16)
	switch {
	case ctx.Err() != nil:
		return lines, ctx.Err()
	case p.Err() != nil:
		return lines, fmt.Errorf("%s", p.Exit())
	}
	return lines, nil
}
