# llmparity: every target sets up what it needs and is quick when all of it is there.

# Where scripts/setup puts what it builds.
CACHE = $(or $(LLMPARITY_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/llmparity)

# Where the Go files are, npm's aside.
FOLDERS = $(wildcard assets/*/*.go) browser cmd compare docs examples internal native reports scripts

# Without the folder of the checkout in what is compiled, all builds, tests and checkouts share it.
export GOFLAGS := $(shell go env GOFLAGS 2>/dev/null) -trimpath

# What make test runs in which way. Each package is in one of these, LIGHT by default.
PACKAGES = $(eval PACKAGES := $(shell go list ./...))$(PACKAGES)
BROWSERS = $(filter llmparity/browser llmparity/browser/webllm,$(PACKAGES))
PAGES = llmparity/reports llmparity/cmd/llmparity
SERVERS = $(filter-out %/logs %/program %/wire,$(filter llmparity/native/%,$(PACKAGES))) llmparity/internal/models/modellib
# Nothing in these runs at the same time as something else: the race detector would only make them slow. Only internal/models/mlc
# has workers, which browser/webllm's tests run with the detector.
ALONE = $(filter llmparity/compare llmparity/compare/% llmparity/reports/% $(addprefix llmparity/,assets/plans browser/find docs \
	scripts/reference) $(addprefix llmparity/internal/,baseline figure gates kinds stats warning host/cache predict/% \
	bench/dryrun bench/plan bench/reproduce bench/resolve record/foreign models models/gguf models/hfconfig models/mlc \
	models/mlc/% models/modelsize models/tiny/reference kit/document kit/fault kit/lines kit/nearest kit/regular kit/whole \
	kit/words),$(PACKAGES))
LIGHT = $(filter-out $(BROWSERS) $(PAGES) $(SERVERS) $(ALONE),$(PACKAGES))

# Tests of the command that start and stop runs, where goroutines meet. The others call one package after another, each of
# which is tested with the race detector itself.
RUNS = TestRunMeasures|Kill|Signals|Repetitions|ExecEngineIs|EventsOfRun|Interrupt

# The longest of its tests that start no browser, which run beside those that do.
BESIDE = Watch|Against|Damaged|Served|ServerAgrees|EveryPlanField|LlamaCpp|WithoutOutput|Workers|NativeEngine|AnyGGUF|OtherEngines

.PHONY: setup build demo test browsers alone light servers test-all test-gpu bench accuracy mlc-proof lint clean

setup:
	@scripts/setup

# Building and linting need npm's parts alone; what runs needs the rest.
build:
	@scripts/setup npm
	@go build -o bin/llmparity ./cmd/llmparity

# The main job: the tiny model in WebLLM and in llama.cpp, measured, compared, reported.
demo: setup build
	@bin/llmparity run

lint:
	@scripts/setup npm staticcheck
	@test -z "$$(gofmt -l $(FOLDERS))" || { echo "gofmt these files:"; gofmt -l $(FOLDERS); exit 1; }
	@go vet -tags slow ./...
	@$(CACHE)/staticcheck/current/staticcheck -tags slow ./...
	@go run ./scripts/lint

# A program with the race detector in it sleeps for a second at its end, and tests start hundreds of them.
test browsers light servers test-all: export GORACE = atexit_sleep_ms=0

# Two at a time, one for each of two cores. One browser at a time: two on these cores would measure each other. A package
# may take longer than Go's ten minutes where others work too. All is tested, whatever failed before it: one answer
# tells everything. Lint comes last: by then most of what it needs is compiled.
test: setup
	@scripts/setup llamacpp-tools ollama staticcheck
	@$(MAKE) --no-print-directory -k -j2 browsers alone light servers lint

# Lint vets all of it.
GO_TEST = go test -p 1 -vet=off -timeout 20m

browsers:
	@failed=0; \
	set -x; $(GO_TEST) -race $(BROWSERS) || failed=1; \
	$(GO_TEST) -run InABrowser llmparity/reports || failed=1; \
	$(GO_TEST) -skip '$(RUNS)|$(BESIDE)' llmparity/cmd/llmparity || failed=1; \
	$(GO_TEST) -race -run '$(RUNS)' llmparity/cmd/llmparity || failed=1; \
	exit $$failed

# InABrowser is the test of reports that starts one.
alone:
	$(GO_TEST) -skip InABrowser $(ALONE) llmparity/reports
	LLMPARITY_CHROME=none $(GO_TEST) -run '$(BESIDE)' -skip '$(RUNS)' llmparity/cmd/llmparity

light:
	$(GO_TEST) -race $(LIGHT)

servers:
	$(GO_TEST) -race $(SERVERS)

# Every test, those on a real model and on many versions of WebLLM too, and every fuzz test for longer than its seeds.
test-all: setup lint
	@scripts/setup llamacpp-tools llamacpp-test ollama smollm2 pandas xvfb lavapipe
	@failed=0; \
	set -x; go test -race -tags slow $(LIGHT) $(filter-out llmparity/compare%,$(ALONE)) || failed=1; \
	go test -tags slow ./compare/... || failed=1; \
	go test -race -p 1 -tags slow -timeout 120m $(BROWSERS) $(SERVERS) $(PAGES) || failed=1; \
	scripts/fuzz 20s || failed=1; \
	exit $$failed

# What needs an NVIDIA GPU that nobody else uses, its driver, and a C compiler.
test-gpu:
	go test -v -count 1 -tags gpu -run CUDA ./internal/host/sample/gpu

# Figures about ourselves: an engine's speed measured against unmeasured, paired in one run; a real model converted and run; the report
# of a million samples.
bench: build
	@scripts/setup system python llamacpp llamacpp-tools ollama smollm2
	go test -run '^$$' -bench Spike -benchtime 1x -timeout 5m ./internal/host/sample
	go test -run '^$$' -tags slow -bench Watched -benchtime 1x -timeout 10m ./cmd/llmparity
	go test -run '^$$' -tags slow -bench LlamaBench -benchtime 1x -timeout 30m ./native/llamacpp
	go test -run '^$$' -bench Client -benchtime 1x -timeout 5m ./native/openai
	go test -run '^$$' -tags slow -bench 'Convert|Decode' -benchtime 3x -timeout 30m ./cmd/llmparity
	go test -run '^$$' -bench Perturbation -benchtime 1x -timeout 20m ./browser/webllm
	go test -run '^$$' -bench 'BenchmarkReport' -benchtime 5x -timeout 10m ./cmd/llmparity
	go test -run '^$$' -bench FirstChart -benchtime 5x -timeout 10m ./cmd/llmparity
	go test -run '^$$' -bench ManyCells -benchtime 1x -timeout 10m ./internal/bench/run
	go test -run '^$$' -tags slow -bench BenchmarkCells -benchtime 1x -timeout 10m ./cmd/llmparity

# Compares predicted with measured memory and writes the errors into docs/reference/accuracy.md: about six minutes.
accuracy: build
	@scripts/setup system python llamacpp smollm2
	@scripts/accuracy

# Runs MLC's library for Qwen2-0.5B, which DIR has, beside our kernels: about an hour. scripts/mlc-proof has more.
mlc-proof: build
	@scripts/setup system python lavapipe
	@scripts/mlc-proof "$(DIR)"

clean:
	rm -rf bin assets/node_modules assets/page/dist/web-llm.js assets/page/dist/catalogue.json assets/charts/dist/echarts.min.js assets/charts/dist/fflate.min.js
