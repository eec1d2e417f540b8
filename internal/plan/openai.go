package plan

import (
	"errors"
	"fmt"
)

// OpenAI is what a plan says of a server that speaks OpenAI's interface.
type OpenAI struct {
	URL    string `yaml:"url"`
	Model  string `yaml:"model,omitempty"`   // by the server's name for it
	API    string `yaml:"api,omitempty"`     // completions, chat; empty: completions
	KeyEnv string `yaml:"key_env,omitempty"` // the variable that holds the key; the key itself stands nowhere
}

// validate looks at a section that is there.
func (o *OpenAI) validate() error {
	switch {
	case o == nil:
		return nil
	case o.URL == "":
		return errors.New("openai.url: no server is named; give one such as http://127.0.0.1:8080")
	case o.API != "" && o.API != "completions" && o.API != "chat":
		return fmt.Errorf("openai.api: %q, use completions or chat", o.API)
	}
	return nil
}
