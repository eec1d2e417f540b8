package safe

import "testing"

func TestTextSpellsOutControls(t *testing.T) {
	for in, want := range map[string]string{"plain, ünïcode שלום": "plain, ünïcode שלום", "a\x1b[2Jb": `a\x1b[2Jb`,
		"\u202eabc": `\u202eabc`, "a\nb": "a\nb",
		"bad\xffbyte": `bad\xffbyte`, "kept \ufffd": "kept \ufffd", "c1 \u009b": `c1 \x9b`, "tab\t": `tab\x09`} {
		if got := Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestMarkdownIsShownAsItStands(t *testing.T) {
	for in, want := range map[string]string{"snake_case": "snake_case", "_a_": `\_a\_`, "# 1": `\# 1`, "a\nb ": "a b",
		"@jane": "@<!-- -->jane", "https://example.com": "https:<!-- -->//example.com", "a|b <i>": `a\|b &lt;i\>`,
		"1. one": `1\. one`, "www.example.com": "www.<!-- -->example.com"} {
		if got := Markdown(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
