package models

import (
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/models/gguf"
)

// titleOf is the name that people know a GGUF's model by, without its dtype; empty: its name is that. llama.cpp writes
// general.name from the name of the folder that it converts, which may be that of a training run, and beside it a base
// name and a size, which are none.
func titleOf(f *gguf.File, path string) string {
	name, _ := f.Text("general.name")
	base, _ := f.Text("general.basename")
	size, _ := f.Text("general.size_label")
	finetune, _ := f.Text("general.finetune")
	file := dtype.Without(strings.TrimSuffix(filepath.Base(path), ".gguf"))
	words := strings.Fields(dtype.Without(base))
	if len(words) == 0 {
		return ""
	}
	if !hasAll(words, []string{size}) {
		words = append(words, size)
	}
	if hasAll(strings.Fields(file), words) { // people chose the file by its name
		words = strings.Fields(file)
	} else {
		for _, word := range strings.Fields(dtype.Without(finetune)) {
			if slices.Contains(tuned, strings.ToLower(word)) {
				words = append(words, word)
			}
		}
	}
	for i, word := range words {
		words[i] = spelled(word)
	}
	if title := strings.Join(words, " "); title != name {
		return title
	}
	return ""
}

// tuned are the kinds of finetune that people name. Others are tags of training runs.
var tuned = []string{"instruct", "chat", "it", "base", "coder", "code", "math", "vision", "vl", "thinking", "reasoning",
	"distill", "preview"}

// spelled writes families as their makers do, where a file has them in lower case.
func spelled(word string) string {
	if word != strings.ToLower(word) {
		return word
	}
	for _, family := range families {
		version, ok := strings.CutPrefix(word, strings.ToLower(family))
		if ok && strings.Trim(version, "0123456789.") == "" {
			return family + version
		}
	}
	number := strings.TrimRight(word, "bm")
	switch {
	case slices.Contains(tuned, word) && len(word) > 2:
		return strings.ToUpper(word[:1]) + word[1:]
	case number != word && strings.Trim(number, "0123456789.x") == "" && number != "": // a size: 135m, 8x7b
		return number + strings.ToUpper(word[len(number):])
	}
	return word
}

var families = []string{"SmolLM", "TinyLlama", "CodeLlama", "Llama", "Qwen", "QwQ", "Phi", "Gemma", "CodeGemma",
	"Mistral", "Ministral", "Mixtral", "DeepSeek", "StableLM", "StarCoder", "OLMo", "Falcon", "Granite", "GPT",
	"Pythia", "Bloom", "Yi"}

// hasAll reports whether a name has all of some words, in any case.
func hasAll(name, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool {
		return word != "" && !slices.ContainsFunc(name, func(w string) bool { return strings.EqualFold(w, word) })
	})
}
