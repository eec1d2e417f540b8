package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"llmparity/browser/byhand"
	"llmparity/browser/driver"
	"llmparity/compare"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/reports"
	"llmparity/reports/tables"
)

// pageFlags are the flags of page.
type pageFlags struct {
	byhand.Options
	models  []string
	collect int
	within  time.Duration
	open    bool
}

func pageCommand() *cobra.Command {
	var f pageFlags
	c := &cobra.Command{
		Use:   "page [PLAN]",
		Short: "Serve a page to measure by hand, in any browser and on any device",
		Long: `Serve a page in which a person chooses engine, model and prompt, presses Start, and watches tokens and
memory. Results can be exported, and saved as runs. With --collect, each browser that opens the page
runs PLAN by itself.

Docs: docs/howto/use-the-page.md`,
		Example: `  llmparity page --open
  llmparity page plan.yaml --listen 0.0.0.0:8443 --collect 3 --for 10m`,
		Args: arguments(cobra.MaximumNArgs(1)), RunE: f.serve,
	}
	p := c.Flags()
	p.StringArrayVar(&f.models, "model", nil, "model to offer beside tiny and the catalogue: a GGUF file or a package's folder; repeatable")
	p.StringVar(&f.Gate.Listen, "listen", "", "HOST:PORT to serve other devices at, by TLS (default: this machine only)")
	p.StringVar(&f.Gate.Certificate, "certificate", "", "file with the certificate for --listen (default: one that llmparity makes)")
	p.StringVar(&f.Gate.Key, "key", "", "file with the key of --certificate")
	p.IntVar(&f.collect, "collect", 0, "wait for so many browsers, each of which runs PLAN, and compare them")
	p.DurationVar(&f.within, "for", 10*time.Minute, "with --collect: how long to wait")
	p.BoolVar(&f.open, "open", false, "open the page in the usual browser")
	p.StringVar(&f.Out, "out", "results", "folder for saved runs")
	return c
}

func (f *pageFlags) serve(c *cobra.Command, args []string) (err error) {
	switch {
	case f.collect < 0 || f.collect == 0 && (len(args) > 0 || c.Flags().Changed("for") || c.Flags().Changed("collect")):
		return fault.New(fault.Usage, "name how many browsers are to run the plan", "PLAN and --for require --collect N")
	case f.Gate.Listen == "" && f.Gate.Certificate+f.Gate.Key != "":
		return fault.New(fault.Usage, "", "--certificate and --key require --listen")
	case f.within <= 0:
		return fault.New(fault.Usage, "", "--for must be more than 0")
	}
	if f.collect > 0 {
		f.Plan = append([]string{}, args...)
		if len(args) == 0 {
			f.Plan = []string{"--engines=webllm", "--thread=worker"}
		} else if _, err := readPlan(args[0]); err != nil {
			return err
		}
	}
	var engines engineFlags
	f.Gate.Cache, f.Style = engines.chosen().Settings.Cache, reports.Style()
	f.Run, f.Export = runByHand, exportRun
	f.Say = func(text string) { fmt.Fprintln(c.OutOrStdout(), text) }
	f.Engines = byhand.EnginesOf(kinds.All)
	f.Models = slices.Concat([]string{models.Tiny}, f.models, modelNames()[1:]) // a page may name no other
	s, err := byhand.Start(f.Options)
	if err != nil {
		return err
	}
	defer func() { err = fault.First(err, s.Close()) }()
	f.Say(s.Welcome())
	if f.open {
		if err := byhand.Open(s.Base + "/"); err != nil {
			f.Say("the page cannot be opened from here; open the address above: " + err.Error())
		}
	}
	if f.collect == 0 {
		<-c.Context().Done()
		return nil // the usual end
	}
	return f.conclude(c.OutOrStdout(), s.Collect(c.Context(), f.collect, f.within))
}

// runByHand is `llmparity run` in a person's browser.
func runByHand(ctx context.Context, hand driver.Hand, args []string, events, notes io.Writer) error {
	var f runFlags
	c := runCommand()
	c.ResetFlags()
	f.register(c)
	c.SetContext(ctx)
	if err := c.ParseFlags(args); err != nil {
		return usage(c, err)
	}
	for _, k := range kinds.All.Sections() {
		if b, ok := f.chosen().Config(k).(interface{ ByHand(driver.Hand) }); ok {
			b.ByHand(hand)
		}
	}
	p, err := f.plan(c, c.Flags().Args())
	if err != nil {
		return err
	}
	return f.run(ctx, p, events, notes)
}

// exportRun writes a run as one JSON document, or its readings as CSV.
func exportRun(w io.Writer, dir, format string) error {
	r, err := record.Open(dir)
	if err != nil {
		return err
	}
	result := compare.With(comparison(), r)
	if format == "json" {
		return reports.ResultJSON(w, result)
	}
	return tables.Samples(w, result, r)
}

// conclude compares what browsers have run.
func (f *pageFlags) conclude(stdout io.Writer, dirs []string) error {
	var runs []*record.Run
	for _, dir := range dirs {
		r, err := record.Open(dir)
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	if len(runs) == 0 {
		return fault.New(fault.Run, "open the page in a browser, or wait longer with --for", "no browser has run the plan")
	}
	result := compare.With(comparison(), runs...)
	if err := reports.Comparison(stdout, result); err != nil {
		return err
	}
	path := filepath.Join(f.Out, "collected.html")
	if err := writeHTML(path, "name another folder with --out", result, runs...); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nreport   %s\n", path)
	if len(runs) < f.collect {
		return fault.New(fault.Run, "wait longer with --for", "%d of %d browsers have run the plan", len(runs),
			f.collect)
	}
	return nil
}
