package llamacpp

import (
	"os"

	"llmparity/internal/cache"
)

func newOneShot() *OneShot { return NewOneShot(Config{Cache: cache.Dir(os.Getenv)}) }
