package llamacpp

import (
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/native/program"
)

// flag is an option of a program of llama.cpp's, with its value where it has one.
type flag []string

func arguments(flags []flag) []string {
	var args []string
	for _, f := range flags {
		args = append(args, f...)
	}
	return args
}

// options are those that a program lists when it is asked for help, with the rest of their lines; nil: it lists none
// that can be read.
type options map[string]string

// listed reads a program's help: options stand at the beginnings of lines, by all their names.
func listed(help []string) options {
	known := options{}
	for _, line := range help {
		fields := strings.Fields(line)
		for i, f := range fields {
			if !strings.HasPrefix(f, "-") {
				break
			}
			name, more := strings.CutSuffix(f, ",")
			known[name] = strings.Join(fields[i+1:], " ")
			if !more {
				break
			}
		}
	}
	if _, ok := known["--model"]; !ok {
		return nil
	}
	return known
}

// harmless options switch off what a program without them does not do.
func harmless() []string {
	return []string{"-dev", "-fit", "--offline", "--log-colors", "-lv", "--no-cache-prompt", "-cram", "--no-webui",
		"-no-cnv", "--no-warmup",
		"--simple-io", "--no-escape"}
}

// fitted says flags in the words of a version of llama.cpp. The error names one that it needs and lacks.
func (k options) fitted(p program.Program, path string, flags []flag) ([]flag, error) {
	if k == nil {
		return flags, nil // it will say itself what it does not know
	}
	var out []flag
	for _, f := range flags {
		rest, ok := k[f[0]]
		_, modes := k["--load-mode"]
		switch {
		case f[0] == noMmap && !ok && modes:
			out = append(out, flag{"--load-mode", "none"})
		case f[0] == "-fa" && ok && !strings.Contains(rest, "auto"): // a switch, once
			if f[1] == "on" {
				out = append(out, f[:1])
			} else if f[1] != "off" {
				return nil, tooOld(p, path, strings.Join(f, " "))
			}
		case ok:
			out = append(out, f)
		case !slices.Contains(harmless(), f[0]):
			return nil, tooOld(p, path, strings.Join(f, " "))
		}
	}
	return out, nil
}

func tooOld(p program.Program, path, lacks string) *engine.Failure {
	return p.Unfit("%s is too old: it does not know %s, and a newer one is needed", path, lacks)
}
