package ollama

import (
	"maps"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

func TestSettingsAreThoseOfAServerOfOurs(t *testing.T) {
	m := engine.Model{Model: record.Model{DType: "q4_0", Context: 512}}
	plain := map[string]string{"weights_dtype": "q4_0", "kv_dtype": "f16", "parallel": "1", "flash_attention": "off",
		"mmap": "off", "context": "512"}
	if got := New(Config{}).Settings(m); !maps.Equal(got, plain) {
		t.Errorf("%v, want %v", got, plain)
	}
	if got := New(Config{KVType: "q8_0", GPU: true}).Settings(m); got["kv_dtype"] != "q8_0" ||
		got["flash_attention"] != "on" || got["gpu"] != "allowed" {
		t.Errorf("%v", got)
	}
	if got := New(Config{URL: DefaultURL}).Settings(m); len(got) != 1 { // it does as it likes
		t.Errorf("%v", got)
	}
}
