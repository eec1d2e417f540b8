package fault

// Code is an exit code of the program.
type Code struct {
	Number  int
	Meaning string
}

// Codes are all exit codes. Help and docs/reference/exit-codes.md print them.
var Codes = []Code{
	{0, "success"},
	{1, "a launch or the run failed; for `reproduce`: this machine differs from the record in a way that can change figures"},
	{2, "wrong usage: a flag, an argument or a plan"},
	{3, "a gate failed"},
	{4, "something is missing or not supported here"},
	{5, "a gate is inconclusive"},
	{130, "interrupted (SIGINT)"},
	{143, "terminated (SIGTERM)"},
}

// Class is a class of errors and what it means.
type Class struct {
	Kind    Kind
	Meaning string
}

// Classes are all classes. Help and docs/reference/exit-codes.md print them.
var Classes = []Class{
	{Run, "a launch or the run failed; the record says why"},
	{Usage, "a flag, an argument or a plan is wrong"},
	{Fallback, "an engine runs on another device than the plan asks for, or with less, such as the CPU instead of a GPU or fewer threads; `--allow-fallback` measures it"},
	{UnknownEngine, "no engine has this name"},
	{Gate, "a gate failed"},
	{Inconclusive, "a gate could not be decided: too noisy, too few launches, or no baseline run"},
	{NoChrome, "Chrome, Chromium or Edge not found, or the browser does not start; with `--attach`: the browser does not answer"},
	{NoLlamaServer, "llama.cpp not found, or too old"},
	{NoEmscripten, "Emscripten not found"},
	{NoPython, "Python or one of the required packages not found"},
	{NoBundle, "WebLLM's bundle not found"},
	{NoAdapter, "the browser has no WebGPU adapter"},
	{NoF16, "float16 was asked for, and the WebGPU adapter does not support it"},
	{NoDisplay, "`--headed` without a display and without Xvfb"},
	{NoOllama, "Ollama not found"},
	{NoProgram, "an `exec:` engine could not be started"},
	{NoContainer, "the container is not found, does not run, or lacks the model or the program"},
	{BadModel, "the model file is missing, empty, truncated, malformed, or in a format that the engine does not run"},
	{UnknownArch, "the model has an architecture that is not supported"},
	{BadLibrary, "the model library is not available, or does not fit the model or WebLLM"},
	{UnknownModel, "WebLLM's catalogue has no such model"},
	{Download, "a download failed, or its checksum is wrong"},
	{PromptTooLong, "the prompt is longer than the context window"},
	{NotSupported, "the engine does not support what the plan asks for"},
	{WontFit, "the cell is predicted to run out of memory and was not launched; `--no-check-oom` launches it"},
	{Unwritable, "a file or folder cannot be written"},
	{DiskFull, "the disk is full"},
	{Quota, "the browser refuses to store the model: the page has used its quota"},
	{BadRecord, "not a run folder, a run folder of another version, or a CSV file that cannot be read"},
	{ServerUnreachable, "server unreachable, access denied, or model not found"},
	{BadProtocol, "an `exec:` engine does not follow the protocol"},
	{NothingToWatch, "no matching process, or the command could not be started"},
	{Interrupted, "interrupted (SIGINT)"},
	{Terminated, "terminated (SIGTERM)"},
}
