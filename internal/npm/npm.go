// Package npm fetches a file of a published npm package by the npm program, which asks the registry that it is set up
// for and checks what it gets against the registry's hash. No script of the package is run and none of its dependencies
// is fetched, so it serves only for packages whose file stands by itself.
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
	"strings"
	"time"

	"llmparity/internal/cache"
	"llmparity/internal/child"
	"llmparity/internal/fault"
	"llmparity/internal/whole"
)

const (
	patience = 3 * time.Minute // for a package of some MB
	maxFile  = 256 << 20
)

// exact is a version that names one package: no range, no tag, nothing that npm would take for something else.
var exact = regexp.MustCompile(`^\d{1,6}\.\d{1,6}\.\d{1,6}(-[0-9A-Za-z.-]{1,64})?$`)

// Kept tells whether File would fetch nothing.
func Kept(dir, name, version, file string) bool {
	_, err := os.Stat(kept(dir, name, version, file))
	return err == nil && exact.MatchString(version)
}

func kept(dir, name, version, file string) string {
	return filepath.Join(dir, "npm", strings.ReplaceAll(name, "/", "+"), version, filepath.Base(file))
}

// File gives the path of a file of a package in the cache folder dir, which is fetched, and say told so, unless it is
// there.
func File(ctx context.Context, dir, name, version, file string, say func(string)) (string, error) {
	if !exact.MatchString(version) {
		return "", fault.New(fault.Usage, "give one like 0.2.80", "%q is no version of %s", version, name)
	}
	path := kept(dir, name, version, file)
	kept := filepath.Dir(path)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := cache.MkdirAll(filepath.Dir(kept)); err != nil {
		return "", err
	}
	scratch, err := child.Scratch("npm")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // swept later at the latest
	say(fmt.Sprintf("fetching %s %s (npm)", name, version))
	packed, err := pack(ctx, scratch, name, version)
	if err != nil {
		return "", err
	}
	// Beside its place first: whoever finds the folder finds it whole.
	aside, err := whole.NewFolder(filepath.Dir(kept))
	if err != nil {
		return "", fault.Wrap(fault.Unwritable, err, "make it writable", "cache folder %s", filepath.Dir(kept))
	}
	defer aside.Remove() // gone after a success
	if err := extract(packed, "package/"+file, filepath.Join(aside.Path, filepath.Base(file))); err != nil {
		return "", fault.Wrap(fault.NoBundle, err, "choose another version", "%s %s", name, version)
	}
	if err := os.Chmod(aside.Path, 0o755); err != nil {
		return "", fmt.Errorf("keeping %s: %w", name, err)
	}
	if err := os.Rename(aside.Path, kept); err != nil {
		if _, there := os.Stat(path); there != nil { // else another one was faster
			return "", fmt.Errorf("keeping %s: %w", name, err)
		}
	}
	return path, nil
}

// pack has npm put the package's archive into a folder, and gives its path.
func pack(ctx context.Context, into, name, version string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	program, err := exec.LookPath("npm")
	if err != nil {
		return "", fault.New(fault.NoBundle, "run `make setup`, or install npm",
			"npm, which fetches %s %s, is not on PATH", name, version)
	}
	cmd := exec.Command(program, "pack", "--json", "--silent", "--ignore-scripts", "--fetch-retries", "1",
		"--fetch-retry-mintimeout", "1000", "--pack-destination", into, name+"@"+version)
	cmd.Dir = into // away from any package of the user's
	var out strings.Builder
	cmd.Stdout = &out
	p, err := child.Start(limited, cmd)
	if err != nil {
		return "", fault.Wrap(fault.NoBundle, err, "install npm", "npm can't be run")
	}
	<-p.Done()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("fetching %s: %w", name, context.Cause(ctx))
	case limited.Err() != nil:
		return "", fault.New(fault.NoBundle, "try again with a better network", "npm did not fetch %s %s within %s",
			name, version, patience)
	case p.Err() != nil:
		return "", failure(name, version, out.String(), p.Err())
	}
	found, err := filepath.Glob(filepath.Join(into, "*.tgz"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("npm said that it fetched %s %s and left no archive", name, version)
	}
	return found[0], nil
}

// failure puts npm's complaint into a line.
func failure(name, version, said string, err error) error {
	var answer struct {
		Error struct{ Code, Summary string }
	}
	_ = json.Unmarshal([]byte(said), &answer) // what is no JSON says nothing of use
	switch e := answer.Error; e.Code {
	case "ETARGET", "E404":
		return fault.New(fault.NoBundle, "`npm view "+name+" versions` lists what there is",
			"npm knows no version %s of %s", version, name)
	case "":
		return fault.Wrap(fault.NoBundle, err, "run `npm pack "+name+"@"+version+"` to see why",
			"npm can't fetch %s %s", name, version)
	default:
		return fault.New(fault.NoBundle, "it takes a network once", "npm can't fetch %s %s: %s: %s", name, version,
			e.Code, fault.OneLine(e.Summary))
	}
}

// extract takes one file out of an archive.
func extract(archive, name, to string) error {
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
			return fmt.Errorf("there is no %s in the package", name)
		case err != nil:
			return err
		case h.Name != name || h.Typeflag != tar.TypeReg:
			continue
		case h.Size > maxFile:
			return fmt.Errorf("%s has %d bytes", name, h.Size)
		}
		out, err := os.Create(to)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return errors.Join(err, out.Close())
	}
}
