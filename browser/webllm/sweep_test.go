package webllm

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestPackagesOfKilledConvertersAreRemoved(t *testing.T) {
	dir := t.TempDir()
	kept := []string{"0123456789ab-v2-c1024-p128-f32", fmt.Sprintf("0123456789ab-v1-c512-p128.%d", os.Getpid()),
		"notes.txt"}
	for _, name := range append(kept, "0123456789ab-v1-c512-p128.999999999") {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sweepPackages(dir)
	sweepPackages(filepath.Join(dir, "none"))
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != len(kept) {
		t.Errorf("left are %v, %v", left, err)
	}
}
