package vocab_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/mlc/vocab"
	"llmparity/internal/models/tokenizer/tokenizertest"
)

// The golden tokens of package tokenizertest were made with these very files, by the library that WebLLM uses.
func TestTokenizerFilesMatchGolden(t *testing.T) {
	for _, k := range tokenizertest.Kinds(t) {
		text, err := json.MarshalIndent(vocab.Of(k.Vocabulary), "", "  ")
		check.Err(t, err)
		text = append(text, '\n')
		check.Err(t, os.WriteFile(filepath.Join(t.ArtifactDir(), k.Name+".tokenizer.json"), text, 0o600))
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != k.SHA256 {
			t.Errorf("%s: tokenizer.json has changed: make the golden tokens again, as tokenizertest/testdata/make.py says", k.Name)
		}
	}
}
