package plan

import (
	"fmt"
	"strconv"

	"llmparity/internal/nearest"
)

// Set gives an axis the values that a flag has, in place of all that the plan says of it, in groups, too. Axes are
// named as lists: models, engines, input_lengths, output_lengths, batch_sizes, concurrency, dtypes, kv_cache_dtypes,
// webllm_versions, contexts, thread_counts, starts. A single value becomes that of the plan's field of one value, where
// there is one. Whether values are possible Validate says, afterwards.
func (p *Plan) Set(axis string, values ...string) error {
	numbers, texts := p.lists(axis)
	if numbers == nil && texts == nil {
		return fmt.Errorf("there is no axis %q, the nearest is %s", axis, nearest.Of(axis, axisLists(), 1)[0])
	}
	if numbers != nil {
		list := make([]int, len(values))
		for i, v := range values {
			n, err := strconv.Atoi(v)
			if err != nil {
				return fmt.Errorf("%s: %q stands where a whole number is wanted", axis, v)
			}
			list[i] = n
		}
		*numbers = list
	} else {
		*texts = values
	}
	p.Axes.rename()
	p.instead(axis, values)
	return nil
}

func axisLists() []string {
	return []string{"models", "engines", "input_lengths", "output_lengths", "batch_sizes", "concurrency", "dtypes",
		"kv_cache_dtypes", "webllm_versions",
		"contexts", "thread_counts", "starts"}
}

// lists gives where an axis' values are put.
func (p *Plan) lists(axis string) (numbers *[]int, texts *[]string) {
	switch axis {
	case "models":
		return nil, new([]string)
	case "engines":
		return nil, &p.Engines
	}
	return p.Axes.list(axis)
}

func (x *Axes) list(axis string) (numbers *[]int, texts *[]string) {
	switch axis {
	case "input_lengths":
		return &x.InputLengths, nil
	case "output_lengths":
		return &x.OutputLengths, nil
	case "batch_sizes":
		return &x.BatchSizes, nil
	case "concurrency":
		return &x.Concurrency, nil
	case "contexts":
		return &x.Contexts, nil
	case "thread_counts":
		return &x.ThreadCounts, nil
	case "dtypes":
		return nil, &x.DTypes
	case "kv_cache_dtypes":
		return nil, &x.KVDTypes
	case "webllm_versions":
		return nil, &x.WebLLMVersions
	case "starts":
		return nil, &x.Starts
	}
	return nil, nil
}

// instead takes away what else the plan says of an axis that was set.
func (p *Plan) instead(axis string, values []string) {
	for i := range p.Models {
		if numbers, texts := p.Models[i].list(axis); numbers != nil {
			*numbers = nil
		} else if texts != nil {
			*texts = nil
		}
		if axis == "engines" {
			p.Models[i].Engines = nil
		}
	}
	switch axis {
	case "models":
		p.Model, p.Models = "", nil
		for _, name := range values {
			p.Models = append(p.Models, Group{Model: name})
		}
		if len(values) == 1 {
			p.Model, p.Models = values[0], nil
		}
	case "input_lengths":
		p.Prompts, p.Sources = nil, nil
	case "batch_sizes":
		p.Concurrency = nil
	case "concurrency":
		p.BatchSizes = nil
		if p.Traffic != nil {
			p.Traffic = p.Traffic.without()
		}
	case "output_lengths":
		p.MaxTokens = alone(&p.OutputLengths, 0)
	case "contexts":
		p.Context = alone(&p.Contexts, Unsaid)
	case "thread_counts":
		p.Threads = alone(&p.ThreadCounts, 0)
	case "dtypes":
		p.DType = alone(&p.DTypes, "")
	case "kv_cache_dtypes":
		p.KVDType = alone(&p.KVDTypes, "")
	case "webllm_versions":
		p.WebLLMVersion, p.WebLLMBundle = alone(&p.WebLLMVersions, ""), ""
	case "starts":
		p.Start = alone(&p.Starts, "")
	}
}

// alone takes the one value out of a list that has no other.
func alone[T any](list *[]T, unsaid T) T {
	if len(*list) != 1 {
		return unsaid
	}
	one := (*list)[0]
	*list = nil
	return one
}

// without is the section without its own number of clients.
func (t Traffic) without() *Traffic {
	t.Concurrency = 0
	return &t
}
