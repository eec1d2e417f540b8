package plan

import (
	"errors"
	"fmt"
	"strconv"
)

// validateAxes looks at lists.
func (p Plan) validateAxes() error {
	if err := p.Axes.validate(""); err != nil {
		return err
	}
	for i, g := range p.Models {
		if err := g.Axes.validate(fmt.Sprintf("models[%d].", i)); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		list string
		n    int
		one  string
		said bool
	}{
		{"dtypes", len(p.DTypes), "dtype", p.DType != ""},
		{"kv_cache_dtypes", len(p.KVDTypes), "kv_cache_dtype", p.KVDType != ""},
		{"webllm_versions", len(p.WebLLMVersions), "webllm_version", p.WebLLMVersion != ""},
		{"contexts", len(p.Contexts), "context", p.Context != Unsaid && p.Context != 0},
		{"thread_counts", len(p.ThreadCounts), "threads", p.Threads != 0},
		{"starts", len(p.Starts), "start", p.Start != ""},
	} {
		if c.n > 0 && c.said {
			return fmt.Errorf("%s: %s says it too; leave one out", c.list, c.one)
		}
	}
	return nil
}

func (x Axes) validate(at string) error {
	for _, c := range []struct {
		field       string
		list        []int
		least, most int
	}{{"input_lengths", x.InputLengths, 1, mostTokens}, {"output_lengths", x.OutputLengths, 1, mostTokens},
		{"batch_sizes", x.BatchSizes, 1, mostClients},
		{"concurrency", x.Concurrency, 1, mostClients}, {"contexts", x.Contexts, 0, mostTokens},
		{"thread_counts", x.ThreadCounts, 1, mostTokens}} {
		err := sound(at+c.field, c.list, strconv.Itoa, func(n int) error {
			if c.field == "contexts" && badContext(n) {
				return fmt.Errorf("%d, at least 2 is needed, or 0 for the model's own", n)
			}
			if n < c.least || n > c.most {
				return fmt.Errorf("%d, from %d to %d are possible", n, c.least, c.most)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, c := range []struct {
		field string
		list  []string
		check func(string) error
	}{
		{"dtypes", x.DTypes, func(v string) error { return knownDType(ofDType, v) }},
		{"kv_cache_dtypes", x.KVDTypes, func(v string) error { return knownDType(ofKVDType, v) }},
		{"webllm_versions", x.WebLLMVersions, version}, {"starts", x.Starts, knownStart},
	} {
		if err := sound(at+c.field, c.list, strconv.Quote, c.check); err != nil {
			return err
		}
	}
	return nil
}

func version(text string) error {
	if text == "" {
		return errors.New("a version such as 0.2.86 is needed")
	}
	return nil
}

// sound refuses those of a list that are wrong, or there already.
func sound[T comparable](field string, list []T, show func(T) string, check func(T) error) error {
	seen := make(map[T]bool, len(list))
	for i, v := range list {
		if err := check(v); err != nil {
			return fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		if seen[v] {
			return fmt.Errorf("%s[%d]: %s is there already", field, i, show(v))
		}
		seen[v] = true
	}
	return nil
}
