package openai_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/native/openai"
)

// A forwarder is not the server, and its memory has nothing to do with the model.
func TestForwarderIsNotSampled(t *testing.T) {
	binary := check.Read(t, os.Args[0])
	for name, want := range map[string]string{"docker-proxy": "forwards to another process", "mouse-server": ""} {
		path := filepath.Join(t.TempDir(), name)
		check.Err(t, os.WriteFile(path, binary, 0o755))
		cmd := exec.Command(path)
		cmd.Env = append(os.Environ(), asServer+"=1")
		out, err := cmd.StdoutPipe()
		check.Err(t, err)
		check.Err(t, cmd.Start())
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		at, err := bufio.NewReader(out).ReadString('\n')
		check.Err(t, err)
		s, p := enginetest.Open(t, openai.New(openai.Config{URL: strings.TrimSpace(at)}))
		said := strings.Join(p.Warned("server-not-sampled"), " ")
		sampled := false
		for _, source := range p.Attached() {
			sampled = sampled || source.Describe().Method == record.MethodStatm &&
				source.Describe().PID == cmd.Process.Pid
		}
		if !strings.Contains(said, want) || sampled != (want == "") {
			t.Errorf("%s: sampled %v, warnings %q", name, sampled, said)
		}
		check.Also(t, s.Close())
	}
}
