package plan

// Source is a prompt that is not a text of the plan's own: exactly one of File, Dataset, Trace and Conversation is set. Who carries out the
// plan reads it: a plan has but names.
type Source struct {
	File         string   `yaml:"file,omitempty"`         // its whole text is the prompt
	Dataset      string   `yaml:"dataset,omitempty"`      // JSON lines: requests have their prompts from it, one after another
	Field        string   `yaml:"field,omitempty"`        // of a data set's lines; empty: prompt
	Limit        int      `yaml:"limit,omitempty"`        // lines of the data set or the trace that are taken; 0: all
	Trace        string   `yaml:"trace,omitempty"`        // a file of arrival times and lengths
	Conversation []string `yaml:"conversation,omitempty"` // what one says to the model, turn by turn
}
