package tinytest

import "strings"

// Prompt is a test prompt and its purpose.
type Prompt struct{ Name, Text string }

// Prompts are the prompts on which engines are compared. On each, the model's greedy text varies and its margins are
// wide, which a test checks.
func Prompts() []Prompt {
	return []Prompt{
		{"one character", "A"},
		{"plain sentence", "The third clock had stopped, and nobody asked what time it was."},
		{"question", "How long does it take to walk from the house to the station?"},
		{"contractions", "I'm sure they've said we'll see, but it isn't what he'd do; don't you agree it's Tom's?"},
		{"punctuation", "?!... --- ;;: ((([[[{{{\"'`~^\\|/_@#$%&*+=<>}}}]]])))"},
		{"digits", "3.14159, 2024-02-29, 1000000, 0x7f, 10:30, 42"},
		{"repetition", strings.Repeat("again and ", 24)},
		{"code", "for i := 0; i < 10; i++ {\n\tif x[i] > 100 {\n\t\tprint(\"value\", i)\n\t}\n}\n"},
		{"newlines and spaces", "one\n\n\ntwo   three\n    four \n\t\tfive  \n"},
		{"JSON", `{"name": "tiny", "layers": 2, "heads": [1, 2, 3, 4], "tied": false}`},
		{"unknown words", "Zyxwvut qqxj BVDKPF mnplk jjjjjjjj"},
		{"chat", "<|im_start|>user\nWhat is the best of three clocks?<|im_end|>\n<|im_start|>assistant\n"},
		{"longer than a prefill chunk of 128 tokens",
			strings.Repeat("What a program has reserved is not what it has used, "+
				"and what it has used is not what it still needs; ask again at 10:30. ", 6)},
	}
}
