package gguf

// The supported pre-tokenizers, which cut a text into words. Byte-level BPE merges within words.
const (
	PreGPT2   = "gpt-2"
	PreSmolLM = "smollm"    // GPT-2's, with every digit a word
	PreLlama3 = "llama-bpe" // digits in threes, contractions in any case; a word that is a token stays whole
	PreQwen2  = "qwen2"     // Llama 3's with single digits, after Unicode normalisation to NFC
)

// preTokenizer returns the canonical name of a file's pre-tokenizer. Others are refused: llama.cpp maps several of them
// to rules that differ from the models' own tokenizers.
func preTokenizer(name string) (pre string, ok bool) {
	switch name {
	case PreGPT2, PreSmolLM, PreLlama3, PreQwen2:
		return name, true
	case "llama3", "llama-v3":
		return PreLlama3, true
	}
	return "", false
}

// WholeWords reports whether a word that is a token is used as it is, without merging.
func (v Vocabulary) WholeWords() bool { return v.Kind == ByteLevelBPE && v.Pre == PreLlama3 }

// Composes reports whether text is normalised to NFC first.
func (v Vocabulary) Composes() bool { return v.Kind == ByteLevelBPE && v.Pre == PreQwen2 }
