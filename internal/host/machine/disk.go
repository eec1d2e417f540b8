package machine

import (
	"context"
	"strings"

	"llmparity/internal/host/cache"
	"llmparity/internal/record"
)

// disks returns the file systems of folders, without those that can't be read.
func disks(ctx context.Context, folders []Folder) []record.Disk {
	var out []record.Disk
	for _, f := range folders {
		u, err := cache.Disk(ctx, f.Path)
		if err != nil || u.Total == 0 {
			continue
		}
		// ext2, ext3 and ext4 share a number
		out = append(out, record.Disk{Role: f.Role, FreeB: int64(u.Free), TotalB: int64(u.Total),
			Filesystem: strings.Replace(u.Fstype, "ext2/ext3", "ext2/3/4", 1)})
	}
	return out
}
