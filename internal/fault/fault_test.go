package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"llmparity/internal/fault"
)

func ExampleNew() {
	err := fault.New(fault.NoChrome, "install Chromium", "no Chrome is on PATH")
	wrapped := fmt.Errorf("webllm, launch 1: %w", err)
	fmt.Println(wrapped)
	fmt.Println(fault.Code(wrapped), fault.Code(errors.New("anything else")), fault.Code(nil))
	// Output:
	// webllm, launch 1: no Chrome is on PATH; install Chromium
	// 10 1 0
}

func TestAnErrorIsOneLineAndKeepsItsCause(t *testing.T) {
	_, cause := os.Open("/nonexistent\nfile")
	err := fault.Wrap(fault.BadModel, cause, "", "the model\ncan't be read")
	if strings.ContainsAny(err.Error(), "\r\n") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q", err)
	}
}
