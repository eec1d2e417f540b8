package resolve

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/prompts"
	"llmparity/internal/run"
)

// candle is the beginning of Michael Faraday's The Chemical History of a Candle (1861), which is in the public domain.
//
//go:embed candle.txt
var candle string

// builtin names the built-in text; leading is how many of its windows count.
const (
	builtin = "builtin"
	leading = 4
)

// window is a window's length in tokens.
const window = 256

// quality cuts a text into windows of a model's tokens, as llama-perplexity does with -c 256: the model's first token
// replaces that of each window, and a last, shorter window is left out.
func (c cache) quality(name string, m engine.Model) (*run.Text, error) {
	return once(c, [3]string{"quality", name, m.Path}, func() (*run.Text, error) {
		text := candle
		if name != builtin {
			var err error
			if text, err = prompts.ReadText(name); err != nil {
				return nil, err
			}
		}
		tokens, err := c.tokenizer(m)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256([]byte(text))
		out := &run.Text{Name: name, SHA256: hex.EncodeToString(sum[:])}
		for ids := tokens.Prompt(text); len(ids) >= window; ids = ids[window:] {
			if name == builtin && len(out.Windows) == leading {
				break
			}
			if tokens.AddBOS {
				ids[0] = tokens.BOS
			}
			out.Windows = append(out.Windows, ids[:window:window])
		}
		if len(out.Windows) == 0 {
			return nil, fault.New(fault.Usage, "use a longer text", "--quality %s: the text has fewer than %d tokens of %s",
				name, window, m.Name)
		}
		return out, nil
	})
}
