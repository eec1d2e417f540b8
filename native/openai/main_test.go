package openai_test

import (
	"os"
	"testing"

	"llmparity/internal/child/childtest"
)

func TestMain(m *testing.M) {
	if os.Getenv("LLMPARITY_TEST_STAMPER") != "" {
		stamper()
	}
	childtest.Main(m)
}
