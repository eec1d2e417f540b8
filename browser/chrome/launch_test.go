package chrome

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"llmparity/browser/driver"
	"llmparity/browser/find"
	"llmparity/browser/flags"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

func TestMain(m *testing.M) { childtest.Browsers(m, func() error { return nil }) }

// watched returns a context with a watchdog.
func watched(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestFlagsArePassedOn(t *testing.T) {
	path, err := find.Chrome("")
	check.Err(t, err)
	l := driver.Launch{Flags: []string{"user-agent=parity/1", "--enable-features=OfTheTest", "hide-scrollbars"}}
	check.Err(t, Check(driver.Options{Launch: l}, ""))
	c, err := launch(watched(t), path, driver.Options{Launch: l})
	check.Err(t, err)
	defer func() {
		check.Also(t, c.Close())
	}()
	agent, err := chromedp.Run(c.Ctx, chromedp.Evaluate[string]("navigator.userAgent"))
	if err != nil || agent != "parity/1" {
		t.Errorf("the browser's user agent is %q (%v)", agent, err)
	}
	// Chrome uses the last list only, so it has ours, too.
	both := "--enable-features=NetworkService,NetworkServiceInProcess,TracingServiceInProcess,OfTheTest"
	for _, want := range []string{"--user-agent=parity/1", both, "--hide-scrollbars"} {
		if !slices.Contains(c.About.Args, want) {
			t.Errorf("the record lacks %s: %q", want, c.About.Args)
		}
	}
}

func TestConflictingFlagsAreRefused(t *testing.T) {
	for text, do := range map[string]string{
		"user-data-dir=/x":                               "profile",
		"--remote-debugging-port=9222":                   "--attach",
		"remote-debugging-pipe":                          "pipe",
		"headless=old":                                   "--headed",
		"use-webgpu-adapter=swiftshader":                 "--adapter",
		"enable-features=A,Translate":                    "measuring",
		"disable-features=TracingServiceInProcess":       "measuring",
		"disable-blink-features=" + flags.EagerMeasuring: "measuring",
		"":          "NAME",
		"--":        "NAME",
		"two words": "NAME",
	} {
		err := Check(driver.Options{Launch: driver.Launch{Flags: []string{text}}}, "")
		enginetest.OneLine(t, err, fault.Usage, record.Other, do, "--chrome-flag")
	}
	for _, c := range []struct {
		launch driver.Launch
		chrome string
	}{
		{driver.Launch{Attach: "h:1"}, "chrome"}, {driver.Launch{Attach: "h:1", Headed: true}, ""},
		{driver.Launch{Attach: "h:1", Flags: []string{"a"}}, ""}, {driver.Launch{Attach: "h"}, ""},
	} {
		if err := Check(driver.Options{Launch: c.launch}, c.chrome); fault.Of(err) != fault.Usage {
			t.Errorf("%+v of %q: %v, want a usage error", c.launch, c.chrome, err)
		}
	}
}

func TestHeadedWithoutDisplay(t *testing.T) {
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	t.Setenv("PATH", t.TempDir())
	fake := check.Script(t, "exit 1", t.TempDir(), "chrome")
	_, err := launch(watched(t), fake, driver.Options{Launch: driver.Launch{Headed: true}})
	enginetest.OneLine(t, err, fault.NoDisplay, record.Other, "apt install xvfb")
}

func TestUnreachableBrowser(t *testing.T) {
	something := httptest.NewServer(http.NotFoundHandler())
	defer something.Close()
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }))
	defer empty.Close()
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	check.Err(t, err)
	nobody.Close()
	host := func(s *httptest.Server) string {
		u, err := url.Parse(s.URL)
		check.Err(t, err)
		return u.Host
	}
	for _, address := range []string{host(something), host(empty), nobody.Addr().String(),
		"ws://" + host(empty) + "/devtools/browser/none"} {
		_, err := launch(watched(t), "", driver.Options{Launch: driver.Launch{Attach: address}})
		enginetest.OneLine(t, err, fault.NoChrome, record.Other, "--remote-debugging-port", address)
	}
	for _, address := range []string{"", "9222", "host", "https://host:1", "ftp://host:1", "host:port:1"} {
		if _, err := find.Address(address); fault.Of(err) != fault.Usage {
			t.Errorf("%q: %v, want a usage error", address, err)
		}
	}
}
