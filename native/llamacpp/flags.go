package llamacpp

import (
	"slices"
	"strings"
)

// flag is a command-line option of llama.cpp, with its value if it has one.
type flag []string

func arguments(flags []flag) []string { return slices.Concat(flags...) }

// options maps the options in a program's help to the rest of their lines; nil: the help could not be parsed.
type options map[string]string

// listed parses a program's help. Lines begin with all names of an option.
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

// harmless lists options that may be dropped: a program that lacks them does not have what they switch off.
var harmless = []string{"-dev", "-fit", "--offline", "--log-colors", "-lv", "--no-cache-prompt", "-cram", "--no-webui",
	"-no-cnv", "--no-warmup", "--simple-io", "--no-escape"}

// fitted adapts options to a version of llama.cpp. The error names an option that is needed and missing.
func (i identity) fitted(flags []flag) (out []flag, err error) {
	if i.options == nil {
		return flags, nil // the program itself will refuse unknown ones
	}
	_, modes := i.options["--load-mode"]
	for _, f := range flags {
		rest, ok := i.options[f[0]]
		old := f[0] == "-fa" && ok && !strings.Contains(rest, "auto") // a switch in old versions
		switch {
		case f[0] == noMmap && !ok && modes:
			out = append(out, flag{"--load-mode", "none"})
		case old && f[1] == "on":
			out = append(out, f[:1])
		case old && f[1] == "off":
		case ok && !old:
			out = append(out, f)
		case !slices.Contains(harmless, f[0]):
			return nil, i.program.Unfit("%s is too old: it does not support %s", i.path, strings.Join(f, " "))
		}
	}
	return out, nil
}
