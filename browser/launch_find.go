package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"

	"llmparity/internal/fault"
)

// ChromeVariable names the environment variable that says which Chrome to start.
const ChromeVariable = "LLMPARITY_CHROME"

// Brands are the browsers that can be asked for by name, those first that are taken where none is asked for.
var Brands = []string{"chrome", "chromium", "edge", "beta", "dev", "canary"}

// stable is how many of the brands are taken unasked: a test channel is nobody's browser unless they say so.
const stable = 3

// FindChrome gives the browser to start: the brand or the path that is given, else what $LLMPARITY_CHROME gives in the
// same way, else Chrome, Chromium or Edge, on PATH or where the system's installers put them.
func FindChrome(given string) (string, error) {
	const get = "install Chromium or Chrome (Debian: apt install chromium), or name one with --chrome or $" +
		ChromeVariable
	for _, given := range []string{given, os.Getenv(ChromeVariable)} {
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
			return "", fault.Wrap(fault.NoChrome, err, get, "no browser %s is on PATH or at its usual places", given)
		}
		return "", fault.Wrap(fault.NoChrome, err, get, "the browser %s can't be started", given)
	}
	places := []string{}
	for _, brand := range Brands[:stable] {
		places = append(places, usualPlaces(runtime.GOOS, brand, os.Getenv)...)
	}
	if found, ok := firstOf(append(places, "chrome")); ok {
		return found, nil
	}
	return "", fault.New(fault.NoChrome, get, "no Chrome, Chromium or Edge is on PATH or at its usual places")
}

func firstOf(places []string) (string, bool) {
	for _, c := range places {
		if found, err := exec.LookPath(c); err == nil {
			return found, true
		}
	}
	return "", false
}

// usualPlaces are the names and paths of a brand on a system, in order; none where the word is no brand. On Windows
// they go by the variables that name the installers' folders: for all users, and for one.
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
	program := "chrome"
	if brand == "edge" {
		program = "msedge"
	}
	if brand == "chrome" || brand == "edge" {
		places = append(places, program)
	}
	for _, variable := range []string{"ProgramFiles", "ProgramFiles(x86)", "LocalAppData"} {
		if dir := getenv(variable); dir != "" {
			places = append(places, dir+`\`+b.windows+`\Application\`+program+".exe")
		}
	}
	return places
}

// brands have names, and the folders of the makers' own packages, which are not on PATH; the application's name on a
// Mac; and the folder on Windows.
var brands = map[string]struct {
	unix         []string
	mac, windows string
}{
	"chrome": {[]string{"google-chrome", "google-chrome-stable", "/opt/google/chrome/chrome"}, "Google Chrome",
		`Google\Chrome`},
	"chromium": {[]string{"chromium", "chromium-browser", "/snap/bin/chromium"}, "Chromium", "Chromium"},
	"edge": {[]string{"microsoft-edge", "microsoft-edge-stable", "msedge", "/opt/microsoft/msedge/msedge"},
		"Microsoft Edge", `Microsoft\Edge`},
	"beta": {[]string{"google-chrome-beta", "/opt/google/chrome-beta/chrome"}, "Google Chrome Beta",
		`Google\Chrome Beta`},
	"dev": {[]string{"google-chrome-unstable", "/opt/google/chrome-unstable/chrome"}, "Google Chrome Dev",
		`Google\Chrome Dev`},
	"canary": {[]string{"google-chrome-canary", "/opt/google/chrome-canary/chrome", "google-chrome-unstable",
		"/opt/google/chrome-unstable/chrome"}, "Google Chrome Canary", `Google\Chrome SxS`},
}
