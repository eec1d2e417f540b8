package huggingface

import (
	"syscall"
	"testing"
	"time"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// A runner that is killed while it loads a model is a crash.
func TestKilledInMidLoad(t *testing.T) {
	thorough(t)
	e := newEngine(t)
	m := enginetest.TinyModel(t)
	check.Err(t, e.Prepare(t.Context(), m, func(string) {}))
	s, p := enginetest.Open(t, e)
	pid := p.PIDs("engine")[0]
	check.Err(t, syscall.Kill(pid, syscall.SIGSTOP)) // so that the load has not ended when it is killed
	time.AfterFunc(200*time.Millisecond, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	err := s.Load(t.Context(), m)
	enginetest.OneLine(t, err, fault.Run, record.Crash, "huggingface ended during load (signal: killed)")
	check.Err(t, s.Close())
}
