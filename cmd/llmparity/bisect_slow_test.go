//go:build slow

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"llmparity/internal/bench/bisect"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/schematest"
	"llmparity/internal/models/npm"
)

// The versions of WebLLM from npm that run the tiny model's library, of which the oldest is 0.2.80. From one on, a busy
// loop of 30 ms a token is planted: that one is named. Of those from 0.2.83 on, none is named without it. Version
// 0.2.83 itself is, without anything planted: it submits a token's kernels together. Other programs hardly change CPU
// time.
func TestBisectFindsAStall(t *testing.T) {
	browserTest(t)
	const last = 86
	builds := map[int]string{}
	for v := 80; v <= last; v++ {
		path, err := npm.File(t.Context(), cache.Dir(os.Getenv), "@mlc-ai/web-llm", fmt.Sprint("0.2.", v),
			"lib/index.js", func(text string) { t.Log(text) })
		check(t, err)
		builds[v] = readFile(t, path)
	}
	for _, c := range []struct{ first, planted, found int }{{80, 85, 85}, {83, 0, 0}, {80, 0, 83}} {
		t.Run(fmt.Sprintf("from %d, planted %d", c.first, c.planted), func(t *testing.T) {
			cmd := program(t, "bisect", "--good", fmt.Sprint("0.2.", c.first), "--bad", fmt.Sprint("0.2.", last),
				"--axis", "webllm", "--figure", "cpu_per_token_ms", "--at", filepath.Join("builds", "{}.js"),
				"--min-effect", "8%", "--json", "--", "--max-tokens", "96")
			for v, text := range builds {
				if c.planted > 0 && v >= c.planted {
					text = stalled(t, text, 30)
				}
				put(t, cmd.Dir, fmt.Sprintf("builds/0.2.%d.js", v), text)
			}
			stdout, said, code := output(t, cmd)
			t.Logf("exit code %d\n%s%s", code, stdout, said)
			a := decoded[bisect.Answer](t, stdout)
			schematest.Valid(t, "bisect", []byte(stdout))
			if c.found == 0 {
				if a.Outcome == bisect.Found {
					t.Errorf("%+v", a)
				}
				return
			}
			if a.Outcome != bisect.Found || a.BadVersion != fmt.Sprint("0.2.", c.found) ||
				a.GoodVersion != fmt.Sprint("0.2.", c.found-1) {
				t.Errorf("%+v", a)
			}
			again, _, _ := output(t, resumed(cmd, cmd.Args[1:]...))
			if again != stdout {
				t.Errorf("the same command again prints %s", again)
			}
		})
	}
}
