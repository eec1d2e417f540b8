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
// loop of 30 ms a token is planted: that one is named. Without it, no version is. Other programs hardly change CPU
// time.
func TestBisectFindsAStall(t *testing.T) {
	browserTest(t)
	const first, last = 80, 86
	builds := map[int]string{}
	for v := first; v <= last; v++ {
		path, err := npm.File(t.Context(), cache.Dir(os.Getenv), "@mlc-ai/web-llm", fmt.Sprint("0.2.", v),
			"lib/index.js", func(text string) { t.Log(text) })
		check(t, err)
		builds[v] = readFile(t, path)
	}
	for _, planted := range []int{83, 0} {
		t.Run(fmt.Sprint("planted ", planted), func(t *testing.T) {
			cmd := program(t, "bisect", "--good", fmt.Sprint("0.2.", first), "--bad", fmt.Sprint("0.2.", last),
				"--axis", "webllm", "--figure", "cpu_per_token_ms", "--at", filepath.Join("builds", "{}.js"),
				"--min-effect", "8%", "--json", "--", "--max-tokens", "96")
			for v, text := range builds {
				if planted > 0 && v >= planted {
					text = stalled(t, text, 30)
				}
				put(t, cmd.Dir, fmt.Sprintf("builds/0.2.%d.js", v), text)
			}
			stdout, said, code := output(t, cmd)
			t.Logf("exit code %d\n%s%s", code, stdout, said)
			a := decoded[bisect.Answer](t, stdout)
			schematest.Valid(t, "bisect", []byte(stdout))
			if planted == 0 {
				if a.Outcome == bisect.Found {
					t.Errorf("%+v", a)
				}
				return
			}
			if a.Outcome != bisect.Found || a.GoodVersion != "0.2.82" || a.BadVersion != "0.2.83" {
				t.Errorf("%+v", a)
			}
			again, _, _ := output(t, resumed(cmd, cmd.Args[1:]...))
			if again != stdout {
				t.Errorf("the same command again prints %s", again)
			}
		})
	}
}
