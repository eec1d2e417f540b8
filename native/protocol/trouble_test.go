//go:build unix

package protocol_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/protocol"
)

// asEngine makes the test binary act as an engine; the next argument is a script.
const asEngine = "as-engine"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asEngine {
		misbehave(os.Args[2])
		os.Exit(0)
	}
	childtest.Main(m)
}

const (
	hello     = `{"id":1,"event":"done","protocol":1,"name":"test","version":"1","device":{"class":"cpu"},"caps":{"ids":true,"exact":true}}`
	cached    = `{"id":1,"event":"done","protocol":1,"name":"test","version":"1","device":{"class":"cpu"},"caps":{"ids":true,"exact":true,"prompt_cache":true}}`
	pieces    = `{"id":1,"event":"done","protocol":1,"name":"test","version":"1","device":{"class":"gpu","name":"a GPU"}}`
	stamped   = `{"id":1,"event":"done","protocol":1,"name":"test","version":"1","device":{"class":"cpu"},"clock":"monotonic"}`
	loaded    = `{"id":2,"event":"done"}`
	token     = `{"id":3,"event":"token","token":1,"text":"a"}`
	piece     = `{"id":3,"event":"token","text":"a"}`
	generated = `{"id":3,"event":"done","finish":"length","prompt_ids":[1]}`
	pieced    = `{"id":3,"event":"done","finish":"length","prompt_tokens":1,"generated":4}`
)

// scripts have the answers of an engine, one for each request. A line in angle brackets is an action.
var scripts = map[string][]string{
	"right": {hello, loaded, strings.Repeat(token+"\n", 4) + generated, `{"id":4,"event":"done"}`},
	"profiled": {strings.Replace(hello, `"exact"`, `"profiles":true,"exact"`, 1), loaded,
		strings.Repeat(token+"\n", 4) +
			strings.Replace(generated, "}", `,"profile":`+deepAnswer+"}", 1)},
	"pieces": {pieces, loaded, piece + "\n" + piece + "\n" + pieced, `{"id":4,"event":"done"}`},
	"a cache": {cached, loaded, strings.Repeat(token+"\n", 4) +
		strings.Replace(generated, "}", `,"cached_tokens":1}`, 1), `{"id":4,"event":"done"}`},
	"an old cache": {cached, loaded, strings.Repeat(token+"\n", 4) + generated, `{"id":4,"event":"done"}`},
	"miscounted": {hello, loaded, strings.Repeat(token+"\n", 4) +
		strings.Replace(generated, "}", `,"generated":9,"prompt_tokens":3}`, 1), `{"id":4,"event":"done"}`},
	"alive": {"{\"id\":1,\"event\":\"alive\"}\n" + hello,
		strings.Repeat("<sleep>\n{\"id\":2,\"event\":\"alive\"}\n", 55) + loaded},
	"rubbish":       {"Loading " + strings.Repeat("very ", 40) + "big model…"},
	"newer":         {strings.Replace(hello, `"protocol":1`, `"protocol":2`, 1)},
	"no version":    {strings.Replace(hello, `"version":"1"`, `"version":""`, 1)},
	"no hello":      {`{"id":1,"event":"error","message":"no licence"}`},
	"mute":          {"<hang>"},
	"dead":          {"<die>"},
	"ends unheard":  {hello, "<close stdin>"},
	"gagged":        {hello, "<close stdout>"},
	"line of 5 MiB": {hello, "<flood one line>"},

	"rounds weights": {hello, `{"id":2,"event":"done","weights":"other_values"}`, token + "\n" + generated},
	"endless words": {strings.Replace(hello, `"caps"`,
		`"policy":{`+many(`"x\u001b[31m%d\n":"`+strings.Repeat("y\\n", 200)+`"`)+`},"caps"`, 1), loaded,
		strings.Repeat(token+"\n", 4) + generated,
		`{"id":4,"event":"done"}`},

	"dies idle":    {hello, loaded, strings.Repeat(token+"\n", 4) + generated + "\n<die>"},
	"closes stdin": {hello + "\n<close stdin>"},
	"all at once":  {hello, loaded, "<sleep>\n" + strings.Repeat(token+"\n", 32) + generated},
	"in three": {hello, loaded, strings.Repeat("<sleep>\n"+strings.Repeat(token+"\n", 10), 3) + token + "\n" +
		token + "\n" + generated},
	"stutters": {hello, loaded, strings.Repeat("<nap>\n"+token+"\n", 10) + "<sleep>\n" +
		strings.Repeat(token+"\n", 22) + generated},
	"one by one": {hello, loaded, strings.Repeat("<nap>\n"+token+"\n", 32) + generated},
	"stamped": {stamped, loaded, "<sleep>\n" + strings.Repeat("<stamps>\n", 16) +
		strings.Replace(pieced, "4", "32", 1)},

	"stamps": {stamped, loaded, "<stamps>\n" + strings.NewReplacer("4", "2", "length", "stop").Replace(pieced),
		`{"id":4,"event":"done"}`},

	"another id":      {hello, `{"id":7,"event":"done"}`},
	"negative":        {hello, loaded, token + "\n" + strings.Replace(generated, "}", `,"generated":-4}`, 1)},
	"no prompt ids":   {hello, loaded, strings.Repeat(token+"\n", 4) + `{"id":3,"event":"done","finish":"length"}`},
	"no finish":       {hello, loaded, token + "\n" + `{"id":3,"event":"done","prompt_ids":[1]}`},
	"counts too many": {pieces, loaded, piece + "\n" + strings.Replace(pieced, "4", "5", 1)},
	"no token":        {hello, loaded, generated},
	"too many":        {hello, loaded, "<flood tokens>"},
	"token in load":   {hello, `{"id":2,"event":"token"}`},
	"no stamp":        {stamped, loaded, piece},
	"old stamp":       {stamped, loaded, `{"id":3,"event":"token","text":"a","t_ns":5}`},
	"future stamp":    {stamped, loaded, `{"id":3,"event":"token","text":"a","t_ns":9000000000000000000}`},
	"cached": {hello, loaded, strings.Repeat(token+"\n", 4) +
		strings.Replace(generated, "}", `,"cached_tokens":2}`, 1)},
	"beyond context": {hello, `{"id":2,"event":"done","context":4}`, strings.Repeat(token+"\n", 4) + generated},
	"hangs":          {hello, loaded, token + "\n<hang>"},
	"dies":           {hello, loaded, token + "\n" + token + "\n<die>"},
	"out of memory":  {hello, loaded, token + "\n<die of memory>"},
	"says oom":       {hello, `{"id":2,"event":"error","class":"oom","message":"16 GiB\nare needed"}`},
	"reads no more":  {hello, loaded + "\n<hang>"},
	"too long":       {hello, loaded, `{"id":3,"event":"error","class":"prompt-too-long","message":"9 tokens, 8 fit"}`},
	"refuses":        {hello, loaded, `{"id":3,"event":"error","message":"not today"}`},
	"ignores cancel": {hello, loaded, token + "\n" + token + "\n" + token + "\n<hang>"},
	"slow to cancel": {hello, loaded, strings.Repeat(token+"\n", 3) + "<sleep>\n" + token + "\n" + generated, "",
		strings.Repeat(strings.Replace(token, "3", "5", 1)+"\n", 4) + strings.Replace(generated, "3", "5", 1)},
	"with a child": {hello + "\n<child>", loaded, token + "\n<hang>"},
	"with a daemon": {hello + "\n<daemon>", loaded, strings.Repeat(token+"\n", 4) + generated,
		`{"id":4,"event":"done"}`},
}

// many returns a thousand fields of an object.
func many(field string) string {
	var fields []string
	for i := range 1000 {
		fields = append(fields, fmt.Sprintf(field, i))
	}
	return strings.Join(fields, ",")
}

// misbehave plays a script.
func misbehave(name string) {
	out, in := bufio.NewWriter(os.Stdout), bufio.NewReaderSize(os.Stdin, 1<<20)
	script, ok := scripts[name]
	if !ok {
		panic("no script " + name)
	}
	fmt.Fprintln(os.Stderr, "warming up")
	for i := 0; ; i++ {
		if _, err := in.ReadBytes('\n'); err != nil {
			return
		}
		if i >= len(script) {
			continue
		}
		for line := range strings.Lines(script[i]) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "<") {
				_ = out.Flush() // the reader may have gone
				act(line, out)
			} else if line != "" {
				fmt.Fprintln(out, line)
			}
		}
		_ = out.Flush()
	}
}

func act(what string, out *bufio.Writer) {
	switch what {
	case "<sleep>":
		time.Sleep(100 * time.Millisecond)
	case "<nap>":
		time.Sleep(20 * time.Millisecond)
		awaitReader(os.Stdout) // so that no two lines are read at once
	case "<hang>":
		time.Sleep(time.Hour)
	case "<die>":
		fmt.Fprintln(os.Stderr, "fatal: the cat sat on it")
		os.Exit(3)
	case "<die of memory>":
		fmt.Fprintln(os.Stderr, "terminate called after throwing an instance of 'std::bad_alloc'")
		os.Exit(3)
	case "<close stdin>":
		os.Stdin.Close()
		fmt.Fprintln(os.Stderr, "stops listening")
		time.Sleep(time.Hour)
	case "<close stdout>":
		os.Stdout.Close()
		time.Sleep(time.Hour)
	case "<stamps>":
		stamp(out)
		stamp(out)
	case "<daemon>": // survives its parent
		cmd := exec.Command("sleep", "600")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
	case "<child>": // keeps our output open
		p, err := os.StartProcess(os.Args[0], []string{os.Args[0], asEngine, "mute"},
			&os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
		if err != nil {
			panic(err)
		}
		_ = p.Release()
	case "<flood one line>":
		for {
			out.WriteString(strings.Repeat("x", 1<<16))
		}
	case "<flood tokens>":
		for {
			fmt.Fprintln(out, token)
		}
	}
}

// stamp prints a token with its time.
func stamp(out *bufio.Writer) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	fmt.Fprintf(out, `{"id":3,"event":"token","text":"a","t_ns":%d}`+"\n", now.Nano())
}

// healthy is longer than an engine that works is ever silent.
const healthy = 2 * time.Minute

func scripted(name string, silence time.Duration) *protocol.Engine {
	return protocol.New(protocol.Config{Silence: silence,
		Command: protocol.Command{Name: "test", Argv: []string{os.Args[0], asEngine, name}}})
}

// outcome is the result of play.
type outcome struct {
	usage  record.Usage
	tokens []record.Token
	probe  *enginetest.Probe
	err    error
}

// play opens, loads, generates four tokens and unloads.
func play(t *testing.T, e engine.Engine, m models.Model) (o outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*healthy)
	defer cancel()
	o.probe = &enginetest.Probe{}
	s, err := e.Open(ctx, o.probe)
	if err != nil {
		o.err = err
		return o
	}
	defer func() {
		check.Also(t, s.Close())
		if n := len(o.probe.Attached()); n > 0 {
			t.Errorf("%d sources are attached after Close", n)
		}
	}()
	if o.err = s.Load(ctx, m); o.err != nil {
		return o
	}
	o.usage, o.err = s.Generate(ctx, engine.Request{Prompt: "the", MaxTokens: 4},
		func(k record.Token) { o.tokens = append(o.tokens, k) })
	if o.err != nil {
		if class := engine.ClassOf(o.err); class == record.Other || class == record.SetUp {
			return o // the engine is still running
		}
		if _, err := s.Generate(ctx, engine.Request{Prompt: "the", MaxTokens: 4}, func(record.Token) {}); err == nil {
			t.Error("an engine that was ended still generates")
		}
		return o
	}
	o.err = s.Unload(ctx)
	return o
}

func TestViolationsAreNamed(t *testing.T) {
	const quick = 5 * time.Second // quick is long enough for a start on a busy machine
	m := enginetest.TinyModel(t)
	for _, c := range []struct {
		script  string
		silence time.Duration
		class   record.Class
		code    fault.Kind
		want    string
	}{
		{"rubbish", healthy, record.BadOutput, fault.BadProtocol,
			`line 1 of its output: not a JSON object; the line is "Loading very very very very very very very very very very very very very very ve…"; messages for people belong on standard error`},
		{"newer", healthy, record.BadOutput, fault.BadProtocol,
			"speaks version 2 of the protocol, llmparity speaks version 1; use a newer llmparity"},
		{"no version", healthy, record.BadOutput, fault.BadProtocol, `"version" is missing`},
		{"no hello", healthy, record.Other, fault.BadProtocol, "no licence"},
		{"mute", quick, record.Hung, fault.BadProtocol,
			"was silent for 5s after hello; last output: warming up"},
		{"dead", healthy, record.Crash, fault.BadProtocol,
			"ended during hello (exit status 3); last output: warming up | fatal: the cat sat on it"},
		{"gagged", healthy, record.BadOutput, fault.Run, "closed its standard output"},
		{"ends unheard", quick, record.Hung, fault.Run, "was silent for 5s after load"},
		{"line of 5 MiB", healthy, record.BadOutput, fault.Run, "line 2 of its output: longer than 4 MiB"},
		{"another id", healthy, record.BadOutput, fault.Run, "answer to request 7, but request 2 (load) is running"},
		{"token in load", healthy, record.BadOutput, fault.Run, "token in answer to load"},
		{"says oom", healthy, record.OOM, fault.Run, "16 GiB are needed"},
		{"negative", healthy, record.BadOutput, fault.Run,
			"a count is negative"},
		{"no prompt ids", healthy, record.BadOutput, fault.Run, `"prompt_ids" is missing`},
		{"no finish", healthy, record.BadOutput, fault.Run, `"finish"`},
		{"counts too many", healthy, record.BadOutput, fault.Run,
			`"generated" is 5 after 1 pieces of a generation of 4 tokens`},
		{"no token", healthy, record.BadOutput, fault.Run, "ended without a token"},
		{"too many", healthy, record.BadOutput, fault.Run, "token 5 of a generation of 4"},
		{"no stamp", healthy, record.BadOutput, fault.Run, `lacks "t_ns"`},
		{"old stamp", healthy, record.BadOutput, fault.Run, "before the request"},
		{"future stamp", healthy, record.BadOutput, fault.Run, "in the future"},
		{"cached", healthy, record.BadOutput, fault.Run, `"cached_tokens" is 2, but the prompt has 1`},
		{"beyond context", healthy, record.BadOutput, fault.Run,
			"1 prompt tokens and 4 generated ones exceed the context of 4"},
		{"hangs", quick, record.Hung, fault.Run, "was silent for 5s after generate"},
		{"dies", healthy, record.Crash, fault.Run,
			"ended during generate (exit status 3); last output: warming up | fatal: the cat sat on it"},
		{"out of memory", healthy, record.OOM, fault.Run, "bad_alloc"},
		{"too long", healthy, record.SetUp, fault.PromptTooLong, "9 tokens, 8 fit"},
		{"refuses", healthy, record.Other, fault.Run, "not today"},
		{"with a child", quick, record.Hung, fault.Run, "was silent"},
	} {
		t.Run(c.script, func(t *testing.T) {
			if c.silence == quick { // waits that long
				t.Parallel()
			}
			o := play(t, scripted(c.script, c.silence), m)
			enginetest.OneLine(t, o.err, c.code, c.class, c.want)
			if strings.HasPrefix(o.err.Error(), "exec:test: ") { // who shows an error puts the name before it
				t.Errorf("begins with the engine's name: %v", o.err)
			}
			if len(o.err.Error()) > 600 {
				t.Errorf("longer than a table can show: %v", o.err)
			}
		})
	}
}

// warned returns the warnings but that tokens came at once: most scripts write all at once, which is only warned of if
// the engine took some time until then.
func warned(p *enginetest.Probe) []record.Warning {
	return slices.DeleteFunc(p.Warnings(), func(w record.Warning) bool { return w.Code == "tokens-at-once" })
}

func TestValidAnswers(t *testing.T) {
	m := enginetest.TinyModel(t)
	for _, c := range []struct {
		script, ids, text string
		warnings          int
	}{
		{"right", "[1 1 1 1]", "aaaa", 0},
		{"pieces", "[-1 -1]", "aa", 0},
		{"miscounted", "[1 1 1 1]", "aaaa", 2},
		{"stamps", "[-1 -1]", "aa", 0},
		{"with a daemon", "[1 1 1 1]", "aaaa", 0},
	} {
		o := play(t, scripted(c.script, healthy), m)
		if left := child.Tagged(os.Getpid()); len(left) > 0 {
			t.Errorf("%s: processes left behind: %v", c.script, left)
		}
		if o.err != nil {
			t.Errorf("%s: %v", c.script, o.err)
		}
		var ids []int
		for i, k := range o.tokens {
			if ids = append(ids, k.ID); i > 0 && k.At.Before(o.tokens[i-1].At) {
				t.Errorf("%s: token %d is before the previous one", c.script, i)
			}
		}
		if fmt.Sprint(ids) != c.ids || o.usage.Text != c.text || len(warned(o.probe)) != c.warnings {
			t.Errorf("%s: %v %q %v, want %s %q and %d warnings", c.script, ids, o.usage.Text, warned(o.probe), c.ids,
				c.text, c.warnings)
		}
	}
}

// loadedScript returns an engine that plays a script, with a model loaded.
func loadedScript(t *testing.T, script string, silence time.Duration) (engine.Session, *enginetest.Probe) {
	t.Helper()
	s, p := enginetest.Open(t, scripted(script, silence))
	enginetest.Load(t, s, enginetest.TinyModel(t))
	return s, p
}

// An engine may send signs of life during a long load.
func TestAliveKeepsEngineRunning(t *testing.T) {
	loadedScript(t, "alive", 5*time.Second)
}

// threeTokens loads and cancels a generation at its third token.
func threeTokens(t *testing.T, script string, silence time.Duration) engine.Session {
	t.Helper()
	s, _ := loadedScript(t, script, silence)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	_, err := s.Generate(ctx, engine.Request{Prompt: "the", MaxTokens: 4}, func(record.Token) {
		if n++; n == 3 {
			cancel()
		}
	})
	if n != 3 || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled at the third token: %d received, %v", n, err)
	}
	return s
}

func TestCancelledRequestEndsBeforeNext(t *testing.T) {
	s := threeTokens(t, "slow to cancel", healthy)
	var tokens int
	usage, err := s.Generate(t.Context(), engine.Request{Prompt: "the", MaxTokens: 4}, func(record.Token) { tokens++ })
	if err != nil || tokens != 4 || usage.Text != "aaaa" {
		t.Errorf("%d tokens, %q, %v", tokens, usage.Text, err)
	}
}

func TestEngineThatIgnoresCancelIsKilled(t *testing.T) {
	s := threeTokens(t, "ignores cancel", 5*time.Second)
	_, err := s.Generate(t.Context(), engine.Request{Prompt: "the", MaxTokens: 4}, func(record.Token) {})
	enginetest.OneLine(t, err, fault.Run, record.Hung, "did not end a cancelled generate")
	// Unload ends the engine, and Load starts another.
	check.Also(t, s.Unload(t.Context()))
	check.Also(t, s.Load(t.Context(), enginetest.TinyModel(t))) // it can be loaded again
}

// The prompt is larger than the pipe's buffer, and the engine does not read it.
func TestEngineThatStopsReading(t *testing.T) {
	for _, c := range []struct {
		name            string
		silence, cancel time.Duration
		want            record.Class
	}{{"silent", 5 * time.Second, healthy, record.Hung},
		{"cancelled", healthy, 300 * time.Millisecond, record.Timeout}} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := loadedScript(t, "reads no more", c.silence)
			ctx, cancel := context.WithTimeout(t.Context(), c.cancel)
			defer cancel()
			_, err := s.Generate(ctx, engine.Request{Prompt: strings.Repeat("the ", 1<<20), MaxTokens: 4},
				func(record.Token) {})
			if engine.ClassOf(err) != c.want {
				t.Errorf("%v of class %s, want %s", err, engine.ClassOf(err), c.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	m := enginetest.TinyModel(t)
	check.Also(t, scripted("right", time.Minute).Check(t.Context(), m))
	other := m
	other.Format, other.Path = "served", ""
	if err := scripted("right", time.Minute).Check(t.Context(), other); fault.Of(err) != fault.BadModel {
		t.Errorf("a served model: %v", err)
	}
	none := protocol.New(protocol.Config{Command: protocol.Command{Name: "x", Argv: []string{"/nonexistent/engine"}}})
	enginetest.OneLine(t, none.Check(t.Context(), m), fault.NoProgram, record.SetUp,
		"/nonexistent/engine cannot be run")
	folder := protocol.New(protocol.Config{Command: protocol.Command{Name: "x", Argv: []string{t.TempDir()}}})
	enginetest.OneLine(t, folder.Check(t.Context(), m), fault.NoProgram, record.SetUp)
}

// Buffered tokens, whether in one write or in a few, give no decode speed.
func TestBufferedTokensGiveNoSpeed(t *testing.T) {
	for script, at := range map[string]bool{"all at once": true, "in three": true, "stutters": false,
		"one by one": false, "stamped": false} {
		t.Run(script, func(t *testing.T) {
			s, p := loadedScript(t, script, healthy)
			usage, err := s.Generate(t.Context(), engine.Request{Prompt: "the", MaxTokens: 32}, func(record.Token) {})
			decode := slices.ContainsFunc(usage.Spans, func(s record.Span) bool { return s.Name == record.Decode })
			warned := len(p.Warned("tokens-at-once")) > 0
			if err != nil || decode == at || warned != at {
				t.Errorf("%v, decode span: %v, warnings %v", err, decode, p.Warnings())
			}
		})
	}
}

// Names and words of an engine are bounded, because they appear in tables.
func TestReportedNamesAreBounded(t *testing.T) {
	o := play(t, scripted("endless words", healthy), enginetest.TinyModel(t))
	if o.err != nil {
		t.Fatal(o.err)
	}
	policy := o.probe.Engine().Policy
	for name, value := range policy {
		if utf8.RuneCountInString(name) > 81 || utf8.RuneCountInString(value) > 81 ||
			strings.ContainsAny(name+value, "\n\x1b") {
			t.Errorf("%q: %q", name, value)
		}
	}
	if n := len(policy); n < 64 || n > 66 {
		t.Errorf("%d names of settings are kept", n)
	}
	if w := warned(o.probe); len(w) != 1 || w[0].Code != "too-many-names" {
		t.Errorf("warnings %v", w)
	}
}

// An engine that converts the weights says what became of them.
func TestConvertedWeightsAreRecorded(t *testing.T) {
	o := play(t, scripted("rounds weights", healthy), enginetest.TinyModel(t))
	if got := o.probe.Engine().Weights; got != record.OtherValues {
		t.Errorf("the record says %q of the weights (%v)", string(got), o.err)
	}
}

// An engine that changes between starts is refused, because figures of two engines would be combined.
func TestChangedEngineIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "engine")
	install := func(hello, more string) {
		script := "#!/bin/sh\nread -r _\n" + more + "cat <<'END'\n" + hello + "\nEND\nread -r _\n"
		check.Err(t, errors.Join(os.WriteFile(path+".new", []byte(script), 0o755),
			os.Rename(path+".new", path)))
	}
	flips := func(from, to string) string { // at its second start
		return "if test -e " + path + ".once; then cat <<'END'; read -r _; exit; fi\n" +
			strings.Replace(hello, from, to, 1) + "\nEND\ntouch " + path + ".once\n"
	}
	for _, c := range []struct{ name, more, want string }{
		{"version", flips(`"version":"1"`, `"version":"2"`), `now reports the version "2", at its first start "1"`},
		{"caps", flips(`"exact":true`, `"exact":false`),
			`now reports the caps "ids", at its first start "ids exact"`},
		{"program", "", "was replaced or changed since its first start; leave it unchanged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_ = os.Remove(path + ".once") // of the previous case
			install(hello, c.more)
			e := protocol.New(protocol.Config{Command: protocol.Command{Name: "test", Argv: []string{path}}})
			open := func() error {
				s, err := e.Open(t.Context(), &enginetest.Probe{})
				if err == nil {
					err = s.Close()
				}
				return err
			}
			check.Err(t, open())
			if c.more == "" {
				install(hello, "# another one\n")
			}
			if err := open(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestCachedTokens(t *testing.T) {
	for script, want := range map[string]int{"right": 0, "a cache": 1, "an old cache": record.CacheUnknown} {
		if o := play(t, scripted(script, healthy), enginetest.TinyModel(t)); o.err != nil ||
			o.usage.CachedTokens != want {
			t.Errorf("%s: %d cached tokens, want %d; %v", script, o.usage.CachedTokens, want, o.err)
		}
	}
}

// An engine that ends after the last request has crashed, too. The error is reported once.
func TestCrashBetweenRequestsIsReported(t *testing.T) {
	m := enginetest.TinyModel(t)
	for _, again := range []bool{false, true} {
		s, p := loadedScript(t, "dies idle", healthy)
		pid := p.Attached()[0].Describe().PID
		generate := func() error {
			_, err := s.Generate(t.Context(), engine.Request{Prompt: "the", MaxTokens: 4}, func(record.Token) {})
			return err
		}
		check.Err(t, generate())
		for begin := time.Now(); child.Alive(pid) && time.Since(begin) < healthy; {
			time.Sleep(5 * time.Millisecond)
		}
		tell := s.Unload
		if again {
			tell = func(context.Context) error { return generate() }
		}
		enginetest.OneLine(t, tell(t.Context()), fault.Run, record.Crash, "the cat sat on it")
		check.Also(t, s.Unload(t.Context()))  // not reported twice
		check.Also(t, s.Load(t.Context(), m)) // it can be loaded again
		check.Also(t, s.Close())
	}
}

func TestEngineThatClosesItsInput(t *testing.T) {
	s, p := enginetest.Open(t, scripted("closes stdin", healthy))
	for log := ""; !strings.Contains(log, "stops listening"); log, _ = p.Logged("exec-test") {
		time.Sleep(5 * time.Millisecond)
	}
	enginetest.OneLine(t, s.Load(t.Context(), enginetest.TinyModel(t)), fault.Run, record.BadOutput,
		"exec:test closed its standard input, where requests arrive")
}
