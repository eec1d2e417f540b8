package plan

// listOf is the list that a field of one value is one of; of any other name it is that name.
func listOf(name string) string {
	switch name {
	case "model":
		return "models"
	case "engine":
		return "engines"
	case "prompt":
		return "prompts"
	case "input_length":
		return "input_lengths"
	case "output_length", "max_tokens":
		return "output_lengths"
	case "batch_size":
		return "batch_sizes"
	case "dtype":
		return "dtypes"
	case "kv_cache_dtype":
		return "kv_cache_dtypes"
	case "webllm_version":
		return "webllm_versions"
	case "context":
		return "contexts"
	case "threads":
		return "thread_counts"
	case "start":
		return "starts"
	}
	return name
}

// canonical is the name here of a field that other tools call otherwise.
func canonical(name string) string {
	switch name {
	case "model_id":
		return "model"
	case "max_model_len":
		return "context"
	case "concurrencies":
		return "concurrency"
	}
	return name
}

// axisOf is the same for all names of an axis.
func axisOf(name string) string { return listOf(canonical(name)) }
