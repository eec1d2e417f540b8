package gguf

// The pre-tokenizers that are supported: they cut a text into the words inside which byte-level BPE merges.
const (
	PreGPT2   = "gpt-2"
	PreSmolLM = "smollm"    // GPT-2's, and every digit is a word
	PreLlama3 = "llama-bpe" // digits in threes, contractions in either case; a word that is a token is taken whole
	PreQwen2  = "qwen2"     // Llama 3's with single digits; text is brought to Unicode's form NFC first
)

// preTokenizer gives the name used here for one that a file has. llama.cpp knows more, and takes several for the same
// that other tokenizers tell apart, "default" by a rule that no model's own tokenizer has: those are refused.
func preTokenizer(name string) (pre string, ok bool) {
	switch name {
	case PreGPT2, PreSmolLM, PreLlama3, PreQwen2:
		return name, true
	case "llama3", "llama-v3":
		return PreLlama3, true
	}
	return "", false
}

// WholeWords says whether a word that is a token is taken as it is, whatever the merges would make of it.
func (v Vocabulary) WholeWords() bool { return v.Kind == ByteLevelBPE && v.Pre == PreLlama3 }

// Composes says whether text is brought to Unicode's form NFC before it is cut.
func (v Vocabulary) Composes() bool { return v.Kind == ByteLevelBPE && v.Pre == PreQwen2 }
