package ci_test

import (
	"encoding/json"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"llmparity/internal/kit/check"
)

const token = "a-token"

// server is git's own server, and as much of the APIs for comments as the scripts use.
type server struct {
	*httptest.Server
	git string // the folder of its repositories

	lock     sync.Mutex
	comments []comment
	calls    []string
	refuse   bool // the token may not comment
}

type comment struct {
	ID   int    `json:"id"`
	Body string `json:"body"`
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{git: t.TempDir()}
	core, err := exec.Command("git", "--exec-path").Output()
	check.Err(t, err)
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(core)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + s.git, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ci"}}
	mux := http.NewServeMux()
	mux.HandleFunc("/owner/", func(w http.ResponseWriter, r *http.Request) {
		// GitHub's action sends the header at once; git asks GitLab first, and then sends what stands in the URL.
		if _, password, ok := r.BasicAuth(); !ok || password != token || len(r.Header["Authorization"]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if !strings.Contains(r.URL.Path, "app.git") { // a repository's page is an address, too
			r.URL.Path = strings.Replace(r.URL.Path, "/owner/app", "/owner/app.git", 1)
		}
		backend.ServeHTTP(w, r)
	})
	mux.HandleFunc("/api/", s.api)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// api lists comments, adds one, or changes one. Pages have two comments here.
func (s *server) api(w http.ResponseWriter, r *http.Request) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	if s.refuse || r.Header.Get("Authorization") != "Bearer "+token && r.Header.Get("Private-Token") != token {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	var got comment
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || got.Body == "" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
	}
	var answer any = got
	switch r.Method {
	case http.MethodGet:
		from := map[string]int{"1": 0, "2": 2, "3": 4}[r.URL.Query().Get("page")]
		from = min(from, len(s.comments))
		answer = append([]comment{}, s.comments[from:min(from+2, len(s.comments))]...)
	case http.MethodPost:
		got.ID = len(s.comments) + 1
		s.comments = append(s.comments, got)
		w.WriteHeader(http.StatusCreated)
	case http.MethodPatch, http.MethodPut:
		id := int(r.URL.Path[len(r.URL.Path)-1] - '0')
		s.comments[id-1].Body = got.Body
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// The script writes one comment, changes it later, and leaves those of others alone.
func TestCommentIsWrittenOnce(t *testing.T) {
	for _, api := range []struct {
		name, url, create, change string
		env                       map[string]string
	}{
		{"GitHub", "/api/repos/owner/app/issues", "POST /api/repos/owner/app/issues/7/comments",
			"PATCH /api/repos/owner/app/issues/comments/4", nil},
		{"GitLab", "/api/v4/projects/12/merge_requests", "POST /api/v4/projects/12/merge_requests/7/notes",
			"PUT /api/v4/projects/12/merge_requests/7/notes/4", map[string]string{"GITLAB_CI": "true"}},
	} {
		t.Run(api.name, func(t *testing.T) {
			s := serve(t)
			s.comments = []comment{{1, "Looks good"}, {2, "a > b"}, {3, "of <!-- llmparity --> I know nothing"}}
			say := func(body, with string) string {
				file := filepath.Join(t.TempDir(), "comment.md")
				write(t, file, body)
				c := exec.Command("python3", "comment.py", file, s.URL+api.url, "7")
				env := map[string]string{"TOKEN": with}
				for k, v := range api.env {
					env[k] = v
				}
				c.Env = environment(env)
				out, err := c.CombinedOutput()
				if err != nil {
					t.Errorf("%v: %s", err, out)
				}
				return string(out)
			}
			say("first\n", token)
			if last := s.calls[len(s.calls)-1]; last != api.create {
				t.Errorf("%s, want %s", last, api.create)
			}
			say("second\nline\n", token)
			if last := s.calls[len(s.calls)-1]; last != api.change {
				t.Errorf("%s, want %s", last, api.change)
			}
			if len(s.comments) != 4 || s.comments[3].Body != "second\nline <!-- llmparity -->" {
				t.Errorf("%+v", s.comments)
			}
			if out := say("third\n", "another"); !strings.Contains(out, "may not comment") ||
				strings.HasPrefix(out, "::warning::") != (api.env == nil) {
				t.Errorf("a token that may not: %s", out)
			}
		})
	}
}
