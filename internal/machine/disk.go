package machine

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/shirou/gopsutil/v3/disk"

	"llmparity/internal/record"
)

// disks returns the file systems of folders, without those that can't be read.
func disks(ctx context.Context, folders []Folder) []record.Disk {
	var out []record.Disk
	for _, f := range folders {
		u, err := disk.UsageWithContext(ctx, existing(f.Path))
		if err != nil || u.Total == 0 {
			continue
		}
		// ext2, ext3 and ext4 share a number
		out = append(out, record.Disk{Role: f.Role, FreeB: int64(u.Free), TotalB: int64(u.Total),
			Filesystem: strings.Replace(u.Fstype, "ext2/ext3", "ext2/3/4", 1)})
	}
	return out
}

// existing returns the folder, or its nearest existing ancestor.
func existing(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return "."
	}
	for {
		if _, err := os.Stat(path); err == nil || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}
