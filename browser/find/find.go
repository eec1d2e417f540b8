// Package find finds installed and running browsers, and identifies their builds. It starts none.
package find

import (
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
)

// Variable is the environment variable for the browser to start.
const Variable = "LLMPARITY_CHROME"

// Brands are the names of browsers. The first three are used by default, the test channels only on request.
var Brands = []string{"chrome", "chromium", "edge", "brave", "firefox", "beta", "dev", "canary"}

// Chrome returns the browser to start: the given name or path, else that in $LLMPARITY_CHROME, else Chrome,
// Chromium or Edge, on PATH or in the usual place.
func Chrome(given string) (string, error) {
	const get = "install Chromium or Chrome (Debian: apt install chromium), or name one with --chrome or $" +
		Variable
	for _, given := range []string{given, os.Getenv(Variable)} {
		if given == "" {
			continue
		}
		if found, ok := firstOf(usualPlaces(runtime.GOOS, given, os.Getenv)); ok {
			return found, nil
		}
		found, err := exec.LookPath(given)
		if err == nil {
			return found, nil
		}
		if slices.Contains(Brands, given) {
			return "", fault.Wrap(fault.NoChrome, err, get, "%s not found on PATH or in the usual places", given)
		}
		return "", fault.Wrap(fault.NoChrome, err, get, "browser %s cannot be started", given)
	}
	places := []string{}
	for _, brand := range Brands[:3] {
		places = append(places, usualPlaces(runtime.GOOS, brand, os.Getenv)...)
	}
	if found, ok := firstOf(append(places, "chrome")); ok {
		return found, nil
	}
	return "", fault.New(fault.NoChrome, get, "Chrome, Chromium and Edge not found on PATH or in the usual places")
}

// Lavapipe returns the browser whose WebGPU runs on Mesa's lavapipe.
func Lavapipe() (string, error) {
	path := filepath.Join(cache.Dir(os.Getenv), "lavapipe", "current", "chrome")
	if _, err := exec.LookPath(path); err != nil {
		return "", fault.New(fault.NoAdapter, "run `scripts/setup lavapipe`", "no browser with lavapipe at %s", path)
	}
	return path, nil
}

func firstOf(places []string) (string, bool) {
	for _, c := range places {
		if found, err := exec.LookPath(c); err == nil {
			return found, true
		}
	}
	return "", false
}

// usualPlaces returns the names and paths of a brand, in order; none if it is not a brand. On Windows they depend on
// the variables for the installers' folders.
func usualPlaces(goos, brand string, getenv func(string) string) (places []string) {
	b, ok := brands[brand]
	switch {
	case !ok:
		return nil
	case goos == "darwin":
		for _, dir := range []string{"/Applications", path.Join(getenv("HOME"), "Applications")} {
			places = append(places, fmt.Sprintf("%s/%s.app/Contents/MacOS/%s", dir, b.mac, b.mac))
		}
		return places
	case goos != "windows":
		return b.unix
	}
	program, below := "chrome", `\Application\`
	switch brand {
	case "edge":
		program = "msedge"
	case "brave", "firefox":
		program = brand
	}
	if brand == "firefox" {
		below = `\`
	}
	if slices.Contains(Brands[:5], brand) && brand != "chromium" {
		places = append(places, program)
	}
	for _, variable := range []string{"ProgramFiles", "ProgramFiles(x86)", "LocalAppData"} {
		if dir := getenv(variable); dir != "" {
			places = append(places, dir+`\`+b.windows+below+program+".exe")
		}
	}
	return places
}

// brands have names and package folders that are not on PATH, the application's name on a Mac, and the folder on
// Windows.
var brands = map[string]struct {
	unix         []string
	mac, windows string
}{
	"chrome": {[]string{"google-chrome", "google-chrome-stable", "/opt/google/chrome/chrome"}, "Google Chrome",
		`Google\Chrome`},
	"chromium": {[]string{"chromium", "chromium-browser", "/snap/bin/chromium"}, "Chromium", "Chromium"},
	"edge": {[]string{"microsoft-edge", "microsoft-edge-stable", "msedge", "/opt/microsoft/msedge/msedge"},
		"Microsoft Edge", `Microsoft\Edge`},
	"brave": {[]string{"brave-browser", "brave", "/opt/brave.com/brave/brave", "/snap/bin/brave"}, "Brave Browser",
		`BraveSoftware\Brave-Browser`},
	"firefox": {[]string{"firefox", "firefox-esr", "/usr/lib/firefox/firefox", "/opt/firefox/firefox"}, "Firefox",
		"Mozilla Firefox"},
	"beta": {[]string{"google-chrome-beta", "/opt/google/chrome-beta/chrome"}, "Google Chrome Beta",
		`Google\Chrome Beta`},
	"dev": {[]string{"google-chrome-unstable", "/opt/google/chrome-unstable/chrome"}, "Google Chrome Dev",
		`Google\Chrome Dev`},
	"canary": {[]string{"google-chrome-canary", "/opt/google/chrome-canary/chrome", "google-chrome-unstable",
		"/opt/google/chrome-unstable/chrome"}, "Google Chrome Canary", `Google\Chrome SxS`},
}

// BuildID returns the linker's build id of a Linux program. Hashing would be slow, as a browser's program has hundreds
// of MB. It is empty if there is none or it is unreadable; then the version must do.
func BuildID(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const header, most = 16, 1 << 10 // sizes of name, content and type, and the name: GNU and a zero
	s := f.Section(".note.gnu.build-id")
	if s == nil || s.Size <= header || s.Size > most {
		return ""
	}
	note, err := s.Data()
	if err != nil || len(note) <= header {
		return ""
	}
	return hex.EncodeToString(note[header:])
}
