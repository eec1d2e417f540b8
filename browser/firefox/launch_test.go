package firefox

import (
	"strings"
	"testing"

	"llmparity/internal/kit/fault"
)

func TestOldFirefoxIsRefused(t *testing.T) {
	for version, old := range map[string]bool{"153.8.0": false, "140.0": false, "139.0.4": true, "": true,
		"new": true} {
		err := supported("Firefox", version)
		if (err != nil) != old || old && (fault.Of(err) != fault.NoChrome || !strings.Contains(err.Error(), "140")) {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestIs(t *testing.T) {
	for path, want := range map[string]bool{"/usr/bin/firefox-esr": true, "firefox": true, "/opt/chrome/chrome": false,
		"C:/Program Files/Mozilla Firefox/firefox.exe": true, "": false} {
		if Is(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
	}
}
