package browser

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"llmparity/browser/find"
	"llmparity/browser/flags"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

func TestFlagsArePassedOn(t *testing.T) {
	path, err := find.Chrome("")
	check.Err(t, err)
	l := Launch{Flags: []string{"user-agent=parity/1", "--enable-features=OfTheTest", "hide-scrollbars"}}
	check.Err(t, l.Check(""))
	c, err := launch(watched(t), path, Config{Launch: l})
	check.Err(t, err)
	defer func() {
		check.Also(t, c.close())
	}()
	agent, err := chromedp.Run(c.ctx, chromedp.Evaluate[string]("navigator.userAgent"))
	if err != nil || agent != "parity/1" {
		t.Errorf("the browser's user agent is %q (%v)", agent, err)
	}
	// Chrome uses the last list only, so it has ours, too.
	both := "--enable-features=NetworkService,NetworkServiceInProcess,TracingServiceInProcess,OfTheTest"
	for _, want := range []string{"--user-agent=parity/1", both, "--hide-scrollbars"} {
		if !slices.Contains(c.args, want) {
			t.Errorf("the record lacks %s: %q", want, c.args)
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
		err := Launch{Flags: []string{text}}.Check("")
		enginetest.OneLine(t, err, fault.Usage, record.Other, do, "--chrome-flag")
	}
	for _, c := range []struct {
		launch Launch
		chrome string
	}{
		{Launch{Attach: "h:1"}, "chrome"}, {Launch{Attach: "h:1", Headed: true}, ""},
		{Launch{Attach: "h:1", Flags: []string{"a"}}, ""}, {Launch{Attach: "h"}, ""},
	} {
		if err := c.launch.Check(c.chrome); fault.Of(err) != fault.Usage {
			t.Errorf("%+v of %q: %v, want a usage error", c.launch, c.chrome, err)
		}
	}
}

func TestHeadedWithoutDisplay(t *testing.T) {
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	t.Setenv("PATH", t.TempDir())
	fake := check.Script(t, "exit 1", t.TempDir(), "chrome")
	_, err := launch(watched(t), fake, Config{Launch: Launch{Headed: true}})
	enginetest.OneLine(t, err, fault.NoDisplay, record.Other, "apt install xvfb")
}

func TestBrowserThatDoesNotStartIsQuoted(t *testing.T) {
	for text, x := range map[string]struct {
		limits    *limits
		want, not string
	}{
		"echo cannot open display >&2; exit 1": {nil, "cannot open display", "\n"},
		"sleep 300":                            {&limits{answer: 100 * time.Millisecond}, "did not answer within 0.1 s", "\n"},
		`cat >&2 <<.
[1:1:1121/180000.1:ERROR:a.cc:1] first
[1:1:1121/180000.2:FATAL:b.cc:2] no such luck: $(printf '%01000d' 7)
[1:1:1121/180000.3:ERROR:c.cc:3] write: Broken pipe (32)
.
exit 1
`: {nil, "no such luck", "Broken"},
	} {
		path := check.Script(t, text, t.TempDir(), "chrome")
		_, err := Open(watched(t), Config{Chrome: path, limits: x.limits}, stubSite, engine.Unmeasured{})
		if fault.Of(err) != fault.NoChrome || !strings.Contains(err.Error(), x.want) ||
			strings.Contains(err.Error(), x.not) {
			t.Errorf("error %v, want NoChrome with %s", err, x.want)
		}
		if n := len(err.Error()) - len(path); n > 300 {
			t.Errorf("error of %d characters: %v", n, err)
		}
	}
	for text, want := range map[string]string{
		"a\n[1:ERROR:x] b\n[1:ERROR:x] c\nd\n\n": "[1:ERROR:x] c",
		"chrome failed to start:\nd\n\n":         "d",
		"":                                       "",
	} {
		if got := telling(text); got != want {
			t.Errorf("%q is quoted as %q, want %q", text, got, want)
		}
	}
}

func TestDeviceClass(t *testing.T) {
	for _, x := range []struct {
		adapterInfo
		class record.DeviceClass
		name  string
	}{
		{adapterInfo{Vendor: "nvidia", Architecture: "turing"}, record.GPU, "nvidia turing"},
		{adapterInfo{Vendor: "google", Architecture: "swiftshader"}, record.SoftwareAdapter, "SwiftShader"},
		{adapterInfo{Vendor: "mesa", Description: "llvmpipe (LLVM 15)"}, record.SoftwareAdapter,
			"mesa llvmpipe (LLVM 15)"},
		{adapterInfo{Vendor: "google", Architecture: "swiftshader", Device: "0xc0de",
			Description: "llvmpipe (LLVM 15)"}, record.SoftwareAdapter, "mesa lavapipe llvmpipe (LLVM 15)"},
		{adapterInfo{Fallback: true}, record.SoftwareAdapter, "unnamed adapter"},
	} {
		if d := x.device(); d.Class != x.class || d.Name != x.name {
			t.Errorf("%+v: %s %q, want %s %q", x.adapterInfo, d.Class, d.Name, x.class, x.name)
		}
	}
}

// A software adapter is no GPU, whatever name it takes, and lavapipe is not SwiftShader.
func TestAskedAdapter(t *testing.T) {
	nvidia := adapterInfo{Vendor: "nvidia", Architecture: "hopper"}
	swiftshader := adapterInfo{Vendor: "google", Architecture: "swiftshader"}
	lavapipe := adapterInfo{Vendor: "google", Architecture: "swiftshader", Description: "llvmpipe (LLVM 15)"}
	for _, c := range []struct {
		asked Adapter
		info  adapterInfo
		got   bool
	}{{Auto, swiftshader, true}, {GPU, nvidia, true}, {GPU, swiftshader, false}, {GPU, lavapipe, false},
		{GPU, adapterInfo{Vendor: "mesa", Fallback: true}, false}, {SwiftShader, swiftshader, true},
		{SwiftShader, lavapipe, false}, {SwiftShader, nvidia, false}, {Lavapipe, lavapipe, true},
		{Lavapipe, swiftshader, false}} {
		if d := c.info.asked(c.asked); d.Missed() == c.got {
			t.Errorf("%s asked of %+v: %+v", c.asked, c.info, d)
		}
	}
}
