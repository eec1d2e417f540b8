package history

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
)

// branch is a store that is a branch of the repository in the current folder. Nothing is checked out: work trees and
// the index stay as they are.
type branch struct {
	name string
	repo string // a folder of the repository; empty: the current one
}

func (b branch) ref() string { return "refs/heads/" + b.name }

// git runs git with a text as its input.
func (b branch) git(ctx context.Context, env []string, in []byte, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir, c.Stdin = b.top(), bytes.NewReader(in)
	c.Env = append(os.Environ(), env...)
	var out, wrong bytes.Buffer
	c.Stdout, c.Stderr = &out, &wrong
	if err := c.Run(); err != nil {
		return "", fault.New(fault.Run, "", "git %s: %s", args[0], fault.OneLine(wrong.String()+" "+err.Error()))
	}
	return strings.TrimSpace(out.String()), nil
}

// top is the repository's work tree: in a folder of it, git would look for the store's folders below that.
func (b branch) top() string {
	c := exec.Command("git", "rev-parse", "--show-toplevel")
	c.Dir = b.repo
	if out, err := c.Output(); err == nil {
		return strings.TrimSpace(string(out))
	}
	return b.repo // a bare repository
}

// head is the branch's last commit; empty: there is no such branch.
func (b branch) head(ctx context.Context) (string, error) {
	if _, err := b.git(ctx, nil, nil, "check-ref-format", "--branch", b.name); err != nil {
		return "", fault.New(fault.Usage, "use "+OfBranch+"BRANCH, such as "+OfBranch+"llmparity-history",
			"--store: %q is not the name of a branch", b.name)
	}
	return b.git(ctx, nil, nil, "for-each-ref", "--format=%(objectname)", b.ref())
}

func (b branch) each(ctx context.Context, folder string, do func(string, []byte)) error {
	head, err := b.head(ctx)
	if err != nil || head == "" {
		return err
	}
	tree, err := b.git(ctx, nil, nil, "ls-tree", head, folder+"/")
	if err != nil || tree == "" {
		return err
	}
	c := exec.CommandContext(ctx, "git", "archive", "--format=tar", head, folder)
	c.Dir = b.top()
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return err
	}
	files := tar.NewReader(out)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			_, _ = io.Copy(io.Discard, out)
			return c.Wait()
		}
		var text []byte
		if err == nil && h.Typeflag == tar.TypeReg {
			text, err = io.ReadAll(files)
		}
		if err != nil {
			_ = c.Wait()
			return fmt.Errorf("reading branch %s: %w", b.name, err)
		}
		if h.Typeflag == tar.TypeReg {
			do(path.Base(h.Name), text)
		}
	}
}

func (b branch) put(ctx context.Context, folder, name string, text []byte) (bool, error) {
	blob, err := b.git(ctx, nil, text, "hash-object", "-w", "--stdin")
	if err != nil {
		return false, err
	}
	const tries = 20 // others may add runs at the same time
	for i := range tries {
		added, again, err := b.commit(ctx, blob, folder+"/"+name)
		if !again {
			return added, err
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(time.Duration(i) * 10 * time.Millisecond):
		}
	}
	if lock := b.lock(ctx); lock != "" {
		return false, fault.New(fault.Run, "if no git runs there, one was killed: rm "+lock, "branch %s is locked by %s",
			b.name, lock)
	}
	return false, fault.New(fault.Run, "try again", "branch %s changed all the time", b.name)
}

// lock is the file with which git locks the branch; empty: it is not locked. It does not say whose it is.
func (b branch) lock(ctx context.Context) string {
	path, err := b.git(ctx, nil, nil, "rev-parse", "--git-path", b.ref()+".lock")
	if err != nil {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.top(), path)
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// commit adds a file to the branch. again says that the branch changed meanwhile.
func (b branch) commit(ctx context.Context, blob, file string) (added, again bool, err error) {
	head, err := b.head(ctx)
	if err != nil {
		return false, false, err
	}
	dir, err := child.Scratch("history")
	if err != nil {
		return false, false, err
	}
	defer os.RemoveAll(dir)
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index"),
		"GIT_AUTHOR_NAME=llmparity", "GIT_AUTHOR_EMAIL=llmparity@localhost",
		"GIT_COMMITTER_NAME=llmparity", "GIT_COMMITTER_EMAIL=llmparity@localhost"}
	tree := []string{"commit-tree", "-m", "history: add " + path.Base(file)}
	if head != "" {
		if there, err := b.git(ctx, nil, nil, "ls-tree", head, file); err != nil || strings.Contains(there, blob) {
			return false, false, err
		}
		if _, err := b.git(ctx, env, nil, "read-tree", head); err != nil {
			return false, false, err
		}
		tree = append(tree, "-p", head)
	}
	if _, err = b.git(ctx, env, nil, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+file); err != nil {
		return false, false, err
	}
	root, err := b.git(ctx, env, nil, "write-tree")
	if err != nil {
		return false, false, err
	}
	made, err := b.git(ctx, env, nil, append(tree, root)...)
	if err != nil {
		return false, false, err
	}
	old := head
	if old == "" {
		old = strings.Repeat("0", len(made)) // it must not exist
	}
	if _, err = b.git(ctx, nil, nil, "update-ref", b.ref(), made, old); err != nil {
		if now, lost := b.head(ctx); lost == nil && (now != head || b.lock(ctx) != "") {
			return false, true, nil
		}
		return false, false, err
	}
	return true, false, nil
}
