package dtype

import (
	"regexp"
	"strings"
)

// inName is a dtype in a model's name: Q8_0, q4f16_1, f32, 4bit, and the format that names of packages end in.
var inName = regexp.MustCompile(
	`(?i)(?P<before>^|[-_./ ])(i?q\d+(_k)?(_[sml01])?(_xs|_xxs|_nl)?|q\d+f\d+(_\d)?|b?fp?(16|32)|\d+-?bit|mlc|gguf)(?P<after>$|[-_./ ])`)

// spaced separates the words of a model's name. Dots are in versions: Qwen2.5.
var spaced = strings.NewReplacer("-", " ", "_", " ")

// Without is a model's name without its dtype, its format and the organisation in front of it, in words.
func Without(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	for next := ""; ; name = next { // neighbours share a separator
		if next = inName.ReplaceAllString(name, "${before}${after}"); next == name {
			break
		}
	}
	return strings.Join(strings.Fields(strings.Trim(spaced.Replace(name), " ./")), " ")
}

// InName is the dtype in a model's name, as the name writes it; empty if it has none.
func InName(name string) string {
	for name != "" {
		at := inName.FindStringSubmatchIndex(name)
		if at == nil {
			return ""
		}
		word := name[at[4]:at[5]]
		if !strings.EqualFold(word, "mlc") && !strings.EqualFold(word, "gguf") {
			return word
		}
		name = name[at[5]:]
	}
	return ""
}

// quantised is a name in llama.cpp's files, which people write in capitals.
var quantised = regexp.MustCompile(`^i?q\d+_[a-z0-9_]+$`)

// People is a dtype as people write it: Q4_K_M, q4f16_1, f32.
func People(name string) string {
	if lower := strings.ToLower(name); quantised.MatchString(lower) {
		return strings.ToUpper(name)
	}
	return name
}
