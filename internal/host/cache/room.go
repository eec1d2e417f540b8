package cache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/shirou/gopsutil/v3/disk"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/kit/words"
)

// LimitVariable is the environment variable with the limit of the cache's models, e.g. 50GiB.
const LimitVariable = "LLMPARITY_CACHE_LIMIT"

const (
	defaultLimit = 20 << 30
	// young is how long after its last use a model stays in any case: another process may be about to use it.
	young = time.Minute
)

// Limit returns how many bytes the models in the cache may have together.
func Limit(getenv func(string) string) (int64, error) {
	text := getenv(LimitVariable)
	if text == "" {
		return defaultLimit, nil
	}
	n, err := Size(text)
	if err != nil {
		return 0, fault.Wrap(fault.Usage, err, "set it to a size such as 50GiB, or unset it", LimitVariable)
	}
	return n, nil
}

var (
	size  = regexp.MustCompile(`^(\d+(?:\.\d+)?) ?([KMGT]iB|B)?$`)
	units = map[string]float64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
)

// Size reads a number of bytes: 512MiB, 1.5GiB, or a plain number.
func Size(text string) (int64, error) {
	m := size.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size such as 512MiB or 1.5GiB", text)
	}
	n, _ := strconv.ParseFloat(m[1], 64) // it matches
	if n *= units[m[2]]; n > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return int64(n), nil
}

// Once makes a model of so many bytes at path in the cache folder root, unless it is there, one process at a time.
func Once(ctx context.Context, root, path string, bytes int64, say func(string), write func() error) error {
	if err := MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	unlock, err := whole.Lock(ctx, filepath.Dir(path)+".lock", func() { say("waiting for another conversion") })
	if err != nil {
		return fault.WriteError(err, path, "set another cache folder with "+Variable)
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := MakeRoom(root, bytes, say); err != nil {
		return err
	}
	return write()
}

// MakeRoom makes room in the cache folder root for a model of so many bytes. It removes the least recently used models
// while all together would exceed the limit, says so in a line each, and fails if the disk has too little space.
func MakeRoom(root string, bytes int64, say func(string)) error {
	limit, err := Limit(os.Getenv)
	if err != nil {
		return err
	}
	models, err := Models(root)
	if err != nil {
		return fmt.Errorf("list the cache: %w", err)
	}
	total := bytes
	for _, e := range models {
		total += e.Bytes
	}
	for _, e := range models {
		if total <= limit {
			break
		}
		if time.Since(e.Used) < young {
			continue
		}
		switch err := e.Remove(); {
		case errors.Is(err, whole.ErrBusy):
		case err != nil:
			return fault.WriteError(err, root, "set another cache folder with "+Variable)
		default:
			total -= e.Bytes
			say(fmt.Sprintf("removed %s (%s, last used %s) from the cache: its limit is %s (%s)", e.Name,
				words.Size(e.Bytes), e.Used.Format(time.DateOnly), words.Size(limit), LimitVariable))
		}
	}
	return Free(root, bytes, "set another cache folder with "+Variable+", or run llmparity cache prune")
}

// Disk describes the file system of a folder, or of its nearest existing ancestor.
func Disk(ctx context.Context, dir string) (*disk.UsageStat, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		dir = "."
	}
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return disk.UsageWithContext(ctx, dir)
		}
		dir = filepath.Dir(dir)
	}
}

// Free checks that a disk has space for so many bytes more. The folder need not exist yet.
func Free(dir string, bytes int64, do string) error {
	if u, err := Disk(context.Background(), dir); err == nil && bytes > int64(u.Free) {
		return fault.New(fault.DiskFull, "free some space, or "+do, "%s needs %s, and its disk has %s free", dir,
			words.Size(bytes), words.Size(int64(u.Free)))
	}
	return nil
}
