package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/kit/words"
)

func cacheCommand() *cobra.Command {
	c := parent("cache", "List and remove converted models and what was downloaded", cacheListCommand(), cachePruneCommand())
	c.Long = `List and remove what llmparity keeps in its cache folder: converted and downloaded models, compiled
model libraries, and tools. Everything is made or downloaded again when it is needed.

Models together stay below ` + cache.LimitVariable + ` (default 20GiB): before a model is converted or
downloaded, the least recently used ones are removed. A model that a run uses is never removed.`
	c.Example = "  llmparity cache list\n  llmparity cache prune --older-than 30d"
	return c
}

func cacheListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List what the cache has: kind, size, last use",
		Example: "  llmparity cache list\n  llmparity cache list --json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			root := cache.Dir(os.Getenv)
			entries, err := cache.List(root)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), entries)
			}
			limit, err := cache.Limit(os.Getenv)
			if err != nil {
				return err
			}
			return printCache(c.OutOrStdout(), root, entries, limit)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printCache(w io.Writer, root string, entries []cache.Entry, limit int64) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tKIND\tSIZE\tLAST USED")
	var models, rest int64
	for _, e := range entries {
		used := e.Used.Format(time.DateOnly)
		switch {
		case e.InUse:
			used = "now"
		case !e.Kind.Model():
			used = "-"
		}
		if e.Kind.Model() {
			models += e.Bytes
		} else {
			rest += e.Bytes
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", e.Name, e.Kind, words.Size(e.Bytes), used)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s: models %s of at most %s, libraries and tools %s\n", root, words.Size(models),
		words.Size(limit), words.Size(rest))
	return err
}

func cachePruneCommand() *cobra.Command {
	var older, larger string
	var all, tools bool
	c := &cobra.Command{
		Use:   "prune",
		Short: "Remove models, libraries or tools from the cache",
		Long: `Remove models that were not used for --older-than, or that are larger than --larger-than; with both
flags, models to which both apply. --all removes all models and compiled libraries. --tools removes
llama.cpp, Ollama, Python and npm packages, which "make setup" installs again. What a run is using stays.`,
		Example: "  llmparity cache prune --older-than 30d --larger-than 1GiB\n  llmparity cache prune --all",
		Args:    arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if older == "" && larger == "" && !all && !tools {
				return fault.New(fault.Usage, "use --older-than 30d, --larger-than 1GiB, --all or --tools",
					"nothing is chosen")
			}
			age, err := ageOf(older)
			if err != nil {
				return err
			}
			least := int64(0)
			if larger != "" {
				if least, err = cache.Size(larger); err != nil {
					return fault.Wrap(fault.Usage, err, "", "--larger-than")
				}
			}
			some := older != "" || larger != ""
			return prune(c.OutOrStdout(), func(e cache.Entry) bool {
				switch e.Kind {
				case cache.Tool:
					return tools
				case cache.Libraries:
					return all
				}
				return all || some && time.Since(e.Used) >= age && e.Bytes > least
			})
		},
	}
	c.Flags().StringVar(&older, "older-than", "", "age since the last use, e.g. 30d or 12h")
	c.Flags().StringVar(&larger, "larger-than", "", "size, e.g. 500MiB")
	c.Flags().BoolVar(&all, "all", false, "all models and compiled libraries")
	c.Flags().BoolVar(&tools, "tools", false, "tools, Python and npm packages")
	c.MarkFlagsMutuallyExclusive("all", "older-than")
	c.MarkFlagsMutuallyExclusive("all", "larger-than")
	return c
}

// ageOf reads a duration that may have days: 30d, 12h.
func ageOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 {
		return 0, fault.New(fault.Usage, "", "--older-than: %q is not an age such as 30d or 12h", text)
	}
	return age, nil
}

// prune removes entries and prints what it did. One that cannot be removed does not stop it.
func prune(w io.Writer, chosen func(cache.Entry) bool) (failed error) {
	entries, err := cache.List(cache.Dir(os.Getenv))
	if err != nil {
		return err
	}
	var freed int64
	for _, e := range entries {
		if !chosen(e) {
			continue
		}
		switch err := e.Remove(); {
		case errors.Is(err, whole.ErrBusy):
			fmt.Fprintf(w, "kept     %s: a run uses it\n", e.Name)
		case err != nil:
			failed = errors.Join(failed, fault.WriteError(err, e.Name, ""))
		default:
			freed += e.Bytes
			fmt.Fprintf(w, "removed  %s  %s\n", e.Name, words.Size(e.Bytes))
		}
	}
	fmt.Fprintf(w, "%s freed\n", words.Size(freed))
	return failed
}
