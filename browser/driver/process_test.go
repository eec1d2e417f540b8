package driver

import "testing"

func TestMostTellingLine(t *testing.T) {
	for text, want := range map[string]string{
		"a\n[1:ERROR:x] b\n[1:ERROR:x] c\nd\n\n": "[1:ERROR:x] c",
		"chrome failed to start:\nd\n\n":         "d",
		"":                                       "",
	} {
		if got := telling(text); got != want {
			t.Errorf("%q is quoted as %q, want %q", text, got, want)
		}
	}
}
