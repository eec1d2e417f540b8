package openai_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
	"llmparity/native/openai"
)

// Who passes on to another is not the server: its memory is nothing of the model's.
func TestAForwarderIsNotSampled(t *testing.T) {
	binary, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"docker-proxy": "passes on to another", "mouse-server": ""} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, binary, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path)
		cmd.Env = append(os.Environ(), asStamper+"=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed, as it should be
		}()
		at, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		p := &enginetest.Probe{}
		s, err := openai.New(openai.Config{URL: "http://" + strings.TrimSpace(at)}).Open(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, w := range p.Warnings() {
			if w.Code == "server-not-sampled" {
				said = w.Text
			}
		}
		sampled := false
		for _, source := range p.Attached() {
			sampled = sampled || source.Describe().Method == record.MethodStatm &&
				source.Describe().PID == cmd.Process.Pid
		}
		if !strings.Contains(said, want) || sampled != (want == "") {
			t.Errorf("%s: sampled %v, said %q", name, sampled, said)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
