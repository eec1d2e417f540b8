//go:build slow

package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"llmparity/assets/bundle"
	"llmparity/internal/bench/bisect"
)

// Ten builds of WebLLM run in a browser. From one on, a stall of 3 ms a token is planted: that one is named. Without
// it, no version is. It takes a quiet machine.
func TestBisectFindsAStall(t *testing.T) {
	browserTest(t)
	module, err := bundle.Script()
	check(t, err)
	for _, planted := range []int{83, 0} {
		t.Run(fmt.Sprint("planted ", planted), func(t *testing.T) {
			cmd := program(t, "bisect", "--good", "0.2.77", "--bad", "0.2.86", "--axis", "webllm",
				"--figure", "decode_tps", "--at", filepath.Join("builds", "{}.js"), "--min-effect", "8%", "--json",
				"--", "--max-tokens", "96")
			for v := 77; v <= 86; v++ {
				text := string(module)
				if planted > 0 && v >= planted {
					text = stalled(t, text)
				}
				put(t, cmd.Dir, fmt.Sprintf("builds/0.2.%d.js", v), text)
			}
			stdout, said, code := output(t, cmd)
			t.Logf("exit code %d\n%s%s", code, stdout, said)
			a := decoded[bisect.Answer](t, stdout)
			if planted == 0 {
				if a.Outcome != bisect.None {
					t.Errorf("%+v", a)
				}
				return
			}
			if a.Outcome != bisect.Found || a.GoodVersion != "0.2.82" || a.BadVersion != "0.2.83" || a.Partly {
				t.Errorf("%+v", a)
			}
			again, _, _ := output(t, resumed(cmd, cmd.Args[1:]...))
			if again != stdout {
				t.Errorf("the same command again prints %s", again)
			}
		})
	}
}
