package tinytest

import "strings"

// Prompt is a test prompt and its purpose.
type Prompt struct{ Name, Text string }

// Prompts are the prompts on which engines are compared. On each, the model's greedy text varies and no token is won by
// chance, which a test checks. They are chosen for that among similar ones.
func Prompts() []Prompt {
	return []Prompt{
		{"one character", "G"},
		{"plain sentence", "The old clock had stopped, but nobody knew what time it was."},
		{"question", "How long does it take to go from the sea to the river?"},
		{"contractions", "I'm sure they've said we'll see, but it isn't what she'd do; don't you think it's his?"},
		{"punctuation", "!?... ;;: --- [[[{{{(((\"'`~^\\|/_@#$%&*+=<>)))]]]}}}"},
		{"digits", "3.14159, 2024-02-29, 65536, 0x7f, 12:45, 42"},
		{"repetition", strings.Repeat("again and ", 27)},
		{"code", "for i := 0; i < 20; i++ {\n\tif x[i] > 50 {\n\t\tprint(\"value\", i)\n\t}\n}\n"},
		{"newlines and spaces", "one\n\n\ntwo   three\n  four \n\t\tten  \n"},
		{"JSON", `{"name": "tiny", "layers": 2, "heads": [1, 2, 3, 4], "tied": true}`},
		{"unknown words", "Zyxwvut jqxq BVDKPF mlpkn jjjjjj"},
		{"chat", "<|im_start|>user\nWhat is the last of two clocks?<|im_end|>\n<|im_start|>assistant\n"},
		{"longer than a prefill chunk of 128 tokens",
			strings.Repeat("What a program has reserved is not what it has used, "+
				"and what it has used is not what it still needs; ask again at 10:30. ", 6)},
	}
}
