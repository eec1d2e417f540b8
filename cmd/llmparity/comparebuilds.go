package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"llmparity/internal/kit/fault"
)

// buildLaunches is how many launches of each build are made, unless the user says otherwise: so many decide by the
// default tolerances where times vary by 8%, as on a shared machine (TestTwelveLaunchesDecideBuilds).
const buildLaunches = 12

// Flags of run that compare-builds has no use for, and those that its help shows.
const (
	notOfBuilds = "engines engine preset against baseline resume retry-failed allow-changed webllm-bundle webllm-version"
	ofBuilds    = "model prompt max-tokens context repetitions until-ci timeout aa detect inconclusive dry-run out quiet json " +
		"chrome adapter"
)

func compareBuildsCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "compare-builds BASELINE BUILD",
		Short: "Compare two builds of WebLLM: is the second one slower or larger?",
		Long: fmt.Sprintf(`Compare two builds of WebLLM. Each build is a file (an ES module, such as lib/index.js) or a version
on npm. Both run the same model and prompt on this machine; their launches alternate. The
first lines of the output are the verdict.

Default tolerances: decode 5%% lower, peak memory 3%% higher; exit code 3: worse; 5: inconclusive.

By default, %d launches of each build. If launches vary by 8%%, as on a shared machine, that is
enough to fail a build that is 20%% slower and to pass an equal one. Six are the minimum.

The flags of llmparity run work too, except those that choose engines or a baseline run.
Docs: docs/howto/compare-builds.md`, buildLaunches),
		Example: `  llmparity compare-builds main.js pr-845.js
  llmparity compare-builds 0.2.85 lib/index.js --model smollm2 --aa`,
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error { return f.compareBuilds(c, args[0], args[1]) },
	}
	f.register(c)
	unlist(c.Flags())
	return c
}

// unlist hides the flags that the help of compare-builds does not show.
func unlist(flags *pflag.FlagSet) {
	shown := strings.Fields(ofBuilds)
	flags.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = flag.Hidden || !slices.Contains(shown, flag.Name)
	})
}

func (f *runFlags) compareBuilds(c *cobra.Command, baseline, build string) error {
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
	if err := f.others(p, base, of, ""); err != nil {
		return err
	}
	return f.start(c, p)
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
