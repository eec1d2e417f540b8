package main

import (
	"path/filepath"
	"testing"

	"llmparity/internal/kit/fault"
)

// A folder that lacks something is refused in a line.
func TestFolderIsRefused(t *testing.T) {
	lightTest(t)
	cmd := program(t, "run", "--engines", "llamacpp", "--model", "folder")
	put(t, filepath.Join(cmd.Dir, "folder"), "config.json", `{"model_type":"llama","hidden_size":64,"intermediate_size":64,`+
		`"num_hidden_layers":1,"num_attention_heads":2,"vocab_size":64,"max_position_embeddings":64}`)
	ends(t, cmd, fault.BadModel, "has no model.safetensors")
}
