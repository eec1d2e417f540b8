package resolve

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"slices"

	"llmparity/internal/bench/prompts"
	"llmparity/internal/bench/score"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/tokenizer"
)

// essays were written for this purpose.
//
//go:embed essays.txt
var essays string

// The names of the built-in text, and of its beginning.
const (
	builtin = "builtin"
	quick   = "quick"
)

// window is a window's length in tokens.
const window = 256

// Of the built-in text, leading windows are quick, and the first tokens are enough: a tokenizer that knows few words
// would make many more.
const (
	leading = 16
	enough  = 83*window + window/2
)

// quality cuts a text into windows of a model's tokens.
func (c cache) quality(name string, m models.Model) (*score.Windows, error) {
	return once(c, [3]string{"quality", name, m.Path}, func() (*score.Windows, error) {
		text, own := essays, name == builtin || name == quick
		if !own {
			var err error
			if text, err = prompts.ReadText(name); err != nil {
				return nil, err
			}
		}
		tokens, err := c.tokenizer(m)
		if err != nil {
			return nil, err
		}
		ids := tokens.Prompt(text)
		if own {
			ids = ids[:min(len(ids), enough)]
		}
		sum := sha256.Sum256([]byte(text))
		out := &score.Windows{Name: name, SHA256: hex.EncodeToString(sum[:]), IDs: windowsOf(ids, tokens)}
		if name == quick {
			out.IDs = out.IDs[:min(len(out.IDs), leading)]
		}
		if len(out.IDs) == 0 {
			return nil, fault.New(fault.Usage, "use a longer text", "--quality %s: the text has fewer than %d tokens of %s",
				name, window, m.Name)
		}
		return out, nil
	})
}

// windowsOf cuts a text as llama-perplexity does with -c 256: the model's first token replaces that of each window, and
// a last, shorter window is left out. Of each window the second half counts. The windows of the text from its 129th
// token on follow: in them the other halves count.
func windowsOf(ids []int, tokens *tokenizer.Tokenizer) (out [][]int) {
	for _, from := range []int{0, window / 2} {
		for rest := ids[min(from, len(ids)):]; len(rest) >= window; rest = rest[window:] {
			w := slices.Clone(rest[:window])
			if tokens.AddBOS {
				w[0] = tokens.BOS
			}
			out = append(out, w)
		}
	}
	return out
}
