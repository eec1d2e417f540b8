package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/cmd/llmparity/help"
	"llmparity/internal/gates"
	"llmparity/internal/kit/fault"
)

// buildLaunches is how many launches of each build are made, unless the user says otherwise: so many decide by the
// default tolerances where times vary by 8%, as on a shared machine (TestTwelveLaunchesDecideBuilds).
const buildLaunches = 12

// Flags of run that compare-builds has no use for, and those of run that its help shows.
const (
	notOfBuilds = "engines engine preset against baseline resume retry-failed allow-changed webllm-bundle webllm-version"
	ofBuilds    = "model prompt max-tokens context repetitions until-ci timeout aa detect inconclusive dry-run out quiet json " +
		"chrome adapter"
)

// defaultPrompt is the prompt of the built-in plan.
const defaultPrompt = "The quick brown fox jumps over the lazy dog."

// buildsFlags are the flags of compare-builds: those of run, and the checks of its gate.
type buildsFlags struct {
	runFlags
	checks checkFlags
}

func compareBuildsCommand() *cobra.Command { return compareBuilds(&buildsFlags{}) }

func compareBuilds(f *buildsFlags) *cobra.Command {
	c := &cobra.Command{
		Use:   "compare-builds BASELINE BUILD",
		Short: "Compare two builds of WebLLM: is the second one slower or larger?",
		Long: fmt.Sprintf(`Compare two builds of WebLLM. Each build is a file (an ES module, such as lib/index.js) or a version
on npm. Both run the same model and prompt on this machine; their launches alternate. The
first lines of the output are the verdict.

Exit code 3: worse than a tolerance; 5: inconclusive. Default tolerances: decode 5%% lower, CPU time
a token 5%% higher, peak memory 3%% higher; time to first token 10%% higher only warns. --vs-baseline or
--thresholds replace them all. The run's folder records them: llmparity gate DIR judges by the same.

By default, %d launches of each build. If launches vary by 8%%, as on a shared machine, that is
enough to fail a build that is 20%% slower and to pass an equal one. Six are the minimum.

The flags of llmparity run work too, except those that choose engines or a baseline run.
Docs: docs/howto/compare-builds.md`, buildLaunches),
		Example: `  llmparity compare-builds main.js pr-845.js
  llmparity compare-builds main.js pr.js --vs-baseline decode_tps=-8% --vs-baseline peak_pss_mb=+5%
  llmparity compare-builds 0.2.85 lib/index.js --model smollm2 --aa`,
		Args: func(c *cobra.Command, args []string) error {
			if f.helpAll {
				return nil
			}
			return arguments(cobra.ExactArgs(2))(c, args)
		},
	}
	f.register(c)
	flags := c.Flags()
	f.checks.register(flags)
	help.Annotate(flags, help.Common, "", ofBuilds+" "+checkNames)
	helpAllFlag(flags, &f.helpAll)
	flags.Lookup("model").Usage += " (default tiny)"
	flags.Lookup("prompt").Usage += fmt.Sprintf(" (default %q)", defaultPrompt)
	flags.Lookup("aa").Usage = "also measure the baseline side a second time; the report shows this machine noise " +
		"beside each difference"
	unlisted := unlist(flags)
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.helpAll {
			for _, flag := range unlisted {
				flag.Hidden = false
			}
			help.Of(c, c.OutOrStdout(), func(*pflag.Flag) bool { return true })
			return nil
		}
		return f.compareBuilds(c, args[0], args[1])
	}
	return c
}

// unlist hides the flags of run that the help of compare-builds does not show. It returns those that it accepts.
func unlist(flags *pflag.FlagSet) (accepted []*pflag.Flag) {
	shown, not := strings.Fields(ofBuilds+" "+checkNames), strings.Fields(notOfBuilds)
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || slices.Contains(shown, flag.Name) {
			return
		}
		flag.Hidden = true
		if !slices.Contains(not, flag.Name) {
			accepted = append(accepted, flag)
		}
	})
	return accepted
}

func (f *buildsFlags) compareBuilds(c *cobra.Command, baseline, build string) error {
	for _, name := range strings.Fields(notOfBuilds) {
		if c.Flags().Changed(name) {
			return fault.New(fault.Usage, "leave it out, or use llmparity run PLAN --against PLAN2",
				"compare-builds has no --%s", name)
		}
	}
	sides := map[string][]string{}
	for _, name := range []string{baseline, build} {
		flag, err := buildFlag(name)
		if err != nil {
			return err
		}
		sides[name] = []string{"--engines", "webllm", flag, name}
		if !c.Flags().Changed("repetitions") {
			sides[name] = append(sides[name], "--repetitions", fmt.Sprint(buildLaunches))
		}
	}
	own := func(string) bool { return true } // every flag is for both builds
	base, of, err := f.otherPlan(c, nil, sides[baseline], own)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(sides[build]); err != nil {
		return err
	}
	p, err := f.plan(c, nil)
	if err != nil {
		return err
	}
	p.Name, of.Name = "builds", "builds"
	if p.Gate, err = f.gate(); err != nil {
		return err
	}
	of.Gate = p.Gate
	if err := f.others(p, base, of, ""); err != nil {
		return err
	}
	return f.start(c, p)
}

// gate has the checks of flags. The plan records it, so that the run is judged again by the same; nil: no flag was
// given. Without a tolerance it is judged by the default ones.
func (f *buildsFlags) gate() (*gates.Gate, error) {
	if !f.checks.given() && !f.judgeFlags.given() {
		return nil, nil
	}
	g, err := f.checks.gate("")
	if err != nil {
		return nil, err
	}
	return f.over(g, len(f.detect) > 0) // --detect may name the figure of a default tolerance
}

// versionOfBuild matches versions on npm.
var versionOfBuild = regexp.MustCompile(`^\d+\.\d+\.\d+[\w.+-]*$`)

// buildFlag is the flag that chooses a build: a file, or a version.
func buildFlag(name string) (string, error) {
	switch {
	case there(name):
		return "--webllm-bundle", nil
	case versionOfBuild.MatchString(name):
		return "--webllm-version", nil
	}
	return "", fault.New(fault.Usage, "name a WebLLM build's ES module, or a version such as 0.2.85",
		"%s: no such file, and not a version", name)
}
