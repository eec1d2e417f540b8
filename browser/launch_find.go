package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"

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
	for _, brand := range Brands[:stable] {
		if found, ok := firstOf(usualPlaces(runtime.GOOS, brand, os.Getenv)); ok {
			return found, nil
		}
	}
	if found, ok := firstOf([]string{"chrome"}); ok {
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

// usualPlaces are the names and paths of a brand on a system, in order; none where the word is no brand.
func usualPlaces(goos, brand string, getenv func(string) string) []string {
	switch goos {
	case "darwin":
		return onMac(brand, getenv("HOME"))
	case "windows":
		return onWindows(brand, getenv)
	}
	return onUnix[brand]
}

// onUnix has names, and the folders of the makers' own packages, which are not on PATH.
var onUnix = map[string][]string{
	"chrome":   {"google-chrome", "google-chrome-stable", "/opt/google/chrome/chrome"},
	"chromium": {"chromium", "chromium-browser", "/snap/bin/chromium"},
	"edge":     {"microsoft-edge", "microsoft-edge-stable", "msedge", "/opt/microsoft/msedge/msedge"},
	"beta":     {"google-chrome-beta", "/opt/google/chrome-beta/chrome"},
	"dev":      {"google-chrome-unstable", "/opt/google/chrome-unstable/chrome"},
	"canary": {"google-chrome-canary", "/opt/google/chrome-canary/chrome", "google-chrome-unstable",
		"/opt/google/chrome-unstable/chrome"},
}

func onMac(brand, home string) []string {
	name, ok := map[string]string{"chrome": "Google Chrome", "chromium": "Chromium", "edge": "Microsoft Edge",
		"beta": "Google Chrome Beta",
		"dev":  "Google Chrome Dev", "canary": "Google Chrome Canary"}[brand]
	if !ok {
		return nil
	}
	var out []string
	for _, dir := range []string{"/Applications", path.Join(home, "Applications")} {
		out = append(out, fmt.Sprintf("%s/%s.app/Contents/MacOS/%s", dir, name, name))
	}
	return out
}

// onWindows goes by the variables that name the installers' folders: for all users, and for one.
func onWindows(brand string, getenv func(string) string) []string {
	below, ok := map[string]string{"chrome": `Google\Chrome`, "chromium": "Chromium", "edge": `Microsoft\Edge`,
		"beta": `Google\Chrome Beta`,
		"dev":  `Google\Chrome Dev`, "canary": `Google\Chrome SxS`}[brand]
	if !ok {
		return nil
	}
	program := map[bool]string{true: "msedge.exe", false: "chrome.exe"}[brand == "edge"]
	var out []string
	if brand == "chrome" || brand == "edge" {
		out = append(out, strings.TrimSuffix(program, ".exe"))
	}
	for _, variable := range []string{"ProgramFiles", "ProgramFiles(x86)", "LocalAppData"} {
		if dir := getenv(variable); dir != "" {
			out = append(out, strings.Join([]string{dir, below, "Application", program}, `\`))
		}
	}
	return out
}
