package gguf

// The supported pre-tokenizers, which cut a text into words. Byte-level BPE merges within words.
const (
	PreGPT2   = "gpt-2"
	PreSmolLM = "smollm"    // GPT-2's, with every digit a word
	PreLlama3 = "llama-bpe" // digits in threes, contractions in any case; a word that is a token stays whole
	PreQwen2  = "qwen2"     // Llama 3's with single digits, after Unicode normalisation to NFC
	PreDBRX   = "dbrx"      // Llama 3's, always merged: Phi-4's
	// PreGPT4o also cuts before capitals inside words: Phi-4-mini's. llama.cpp cuts at combining marks as well, and
	// not before capitals outside ASCII.
	PreGPT4o = "gpt-4o"
)

// preTokenizers maps the names in files. Others are refused: llama.cpp maps several of them to rules that differ from
// the models' own tokenizers.
var preTokenizers = map[string]string{PreGPT2: PreGPT2, PreSmolLM: PreSmolLM, PreQwen2: PreQwen2, PreLlama3: PreLlama3,
	"llama3": PreLlama3, "llama-v3": PreLlama3, PreDBRX: PreDBRX, PreGPT4o: PreGPT4o}

// WholeWords reports whether a word that is a token is used as it is, without merging.
func (v Vocabulary) WholeWords() bool { return v.Kind == ByteLevelBPE && v.Pre == PreLlama3 }

// Composes reports whether text is normalised to NFC first.
func (v Vocabulary) Composes() bool { return v.Kind == ByteLevelBPE && v.Pre == PreQwen2 }

// PreTokenizers lists the supported pre-tokenizers.
func PreTokenizers() []string {
	return []string{PreGPT2, PreSmolLM, PreLlama3, PreQwen2, PreDBRX, PreGPT4o}
}
