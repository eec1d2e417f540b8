package openai_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"llmparity/internal/child"
)

func TestMain(m *testing.M) {
	if os.Getenv("LLMPARITY_TEST_STAMPER") != "" {
		stamper()
	}
	code := m.Run()
	if code == 0 {
		if left := append(child.Scratches(os.Getpid()), strings.Fields(strings.Trim(fmt.Sprint(child.Tagged(os.Getpid())), "[]"))...); len(left) > 0 {
			panic("left behind: " + strings.Join(left, " "))
		}
		if err := goleak.Find(); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}
