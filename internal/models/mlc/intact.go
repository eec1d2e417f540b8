package mlc

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	md5simd "github.com/minio/md5-simd"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/kit/workers"
)

// Intact reads shards in a folder, and returns an error if one has another MD5 than the package's list.
// MD5 detects accidents, not attacks.
func Intact(ctx context.Context, dir string, shards []Shard) error {
	sums := md5simd.NewServer()
	defer sums.Close()
	return workers.Each(ctx, atOnce, len(shards), func(ctx context.Context, i int) error {
		return shards[i].intact(ctx, dir, sums)
	})
}

func (s Shard) intact(ctx context.Context, dir string, sums md5simd.Server) error {
	f, err := os.Open(filepath.Join(dir, s.File))
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sums.NewHash()
	defer sum.Close()
	if _, err := io.CopyBuffer(whole.Until(ctx, sum), f, make([]byte, 1<<20)); err != nil {
		return err
	}
	if is := hex.EncodeToString(sum.Sum(nil)); is != s.MD5 {
		return fmt.Errorf("%s is damaged: its MD5 is %s instead of %s", s.File, is, s.MD5)
	}
	return nil
}

// Intact checks the shards of the package.
func (g *GGUF) Intact(ctx context.Context) error {
	err := Intact(ctx, g.dir, g.shards)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fault.Wrap(fault.BadModel, err, "make or download it again", "package %s", g.dir)
}
