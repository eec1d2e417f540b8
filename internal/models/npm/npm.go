// Package npm downloads a file of a published npm package with the npm program, which uses the configured registry and
// checks hashes. It runs no scripts and installs no dependencies, so the file must work on its own.
package npm

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
)

const (
	patience = 3 * time.Minute // for a few MB
	maxFile  = 256 << 20
)

// exact matches a full version: no range, no tag, nothing else that npm would interpret.
var exact = regexp.MustCompile(`^\d{1,6}\.\d{1,6}\.\d{1,6}(-[0-9A-Za-z.-]{1,64})?$`)

// Kept returns where File keeps a file, and whether it is there, so that it needs no download.
func Kept(dir, name, version, file string) (path string, ok bool) {
	path = filepath.Join(dir, "npm", strings.ReplaceAll(name, "/", "+"), version, filepath.Base(file))
	_, err := os.Stat(path)
	return path, err == nil && exact.MatchString(version)
}

// File returns the path of a package's file in the cache folder dir. If it is missing, File downloads it and reports
// that with say.
func File(ctx context.Context, dir, name, version, file string, say func(string)) (string, error) {
	if !exact.MatchString(version) {
		return "", fault.New(fault.Usage, "use a version such as 0.2.80", "%q is not a version of %s", version, name)
	}
	path, ok := Kept(dir, name, version, file)
	if ok {
		return path, nil
	}
	scratch, err := child.Scratch("npm")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // otherwise swept later
	say(fmt.Sprintf("downloading %s %s (npm)", name, version))
	packed, err := pack(ctx, scratch, name, version)
	if err != nil {
		return "", err
	}
	if err := cache.MkdirAll(filepath.Dir(path)); err != nil {
		return "", err
	}
	err = whole.Write(path, func(w io.Writer) error { return extract(packed, "package/"+file, w) })
	if err != nil {
		return "", fault.Wrap(fault.NoBundle, err, "choose another version", "%s %s", name, version)
	}
	return path, nil
}

// pack downloads the package's archive with npm and returns its path.
func pack(ctx context.Context, into, name, version string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	program, err := exec.LookPath("npm")
	if err != nil {
		return "", fault.New(fault.NoBundle, "run `make setup`, or install npm",
			"cannot download %s %s: npm is not on PATH", name, version)
	}
	cmd := exec.Command(program, "pack", "--json", "--silent", "--ignore-scripts", "--fetch-retries", "1",
		"--fetch-retry-mintimeout", "1000", "--pack-destination", into, name+"@"+version)
	cmd.Dir = into // outside any package of the user
	var out strings.Builder
	cmd.Stdout = &out
	p, err := child.Start(limited, cmd)
	if err != nil {
		return "", fault.Wrap(fault.NoBundle, err, "install npm", "cannot run npm")
	}
	<-p.Done()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("download %s: %w", name, context.Cause(ctx))
	case limited.Err() != nil:
		return "", fault.New(fault.NoBundle, "try again with a better connection",
			"npm did not download %s %s within %s", name, version, patience)
	case p.Err() != nil:
		return "", failure(name, version, out.String(), p.Err())
	}
	found, err := filepath.Glob(filepath.Join(into, "*.tgz"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("npm reported success for %s %s but left no archive", name, version)
	}
	return found[0], nil
}

// Versions lists the published versions of a package.
func Versions(ctx context.Context, name string) ([]string, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.Command("npm", "view", name, "versions", "--json", "--silent", "--fetch-retries", "1")
	cmd.Dir = os.TempDir() // outside any package of the user
	var out strings.Builder
	cmd.Stdout = &out
	p, err := child.Start(limited, cmd)
	if err != nil {
		return nil, fault.Wrap(fault.NoBundle, err, "install npm", "cannot run npm")
	}
	<-p.Done()
	var versions []string
	if err := json.Unmarshal([]byte(out.String()), &versions); err != nil || p.Err() != nil {
		return nil, fault.New(fault.NoBundle, "this needs a network connection; or list the versions yourself",
			"npm does not list the versions of %s", name)
	}
	return slices.DeleteFunc(versions, func(v string) bool { return !exact.MatchString(v) }), nil
}

// failure turns npm's error into one line.
func failure(name, version, said string, err error) error {
	var answer struct {
		Error struct{ Code, Summary string }
	}
	_ = json.Unmarshal([]byte(said), &answer) // other output is ignored
	switch e := answer.Error; e.Code {
	case "ETARGET", "E404":
		return fault.New(fault.NoBundle, "`npm view "+name+" versions` lists the versions",
			"npm has no version %s of %s", version, name)
	case "":
		return fault.Wrap(fault.NoBundle, err, "run `npm pack "+name+"@"+version+"` to see why",
			"npm cannot download %s %s", name, version)
	default:
		return fault.New(fault.NoBundle, "this needs a network connection once",
			"npm cannot download %s %s: %s: %s", name, version, e.Code, fault.OneLine(e.Summary))
	}
}

// extract copies one file out of an archive.
func extract(archive, name string, to io.Writer) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for in := tar.NewReader(unzipped); ; {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the package has no file %s", name)
		case err != nil:
			return err
		case h.Name != name || h.Typeflag != tar.TypeReg:
			continue
		case h.Size > maxFile:
			return fmt.Errorf("%s has %d bytes", name, h.Size)
		}
		_, err = io.Copy(to, in)
		return err
	}
}
