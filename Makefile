# llmparity: every target sets up what it needs and is quick when all of it is there.

# Where scripts/setup puts what it builds.
CACHE = $(or $(LLMPARITY_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/llmparity)

# Where the Go files are, npm's aside.
FOLDERS = $(wildcard assets/*/*.go) browser cmd compare docs examples internal native reports scripts

# Without the folder of the checkout in what is compiled, all builds, tests and checkouts share it.
export GOFLAGS := $(shell go env GOFLAGS 2>/dev/null) -trimpath

# What make test runs in which way: with a browser, with a server or a compiler, with the race detector, or like any test. The
# detector is for packages where goroutines meet; the others it would only make slow, the command's tests also. Those choose
# their own groups ($LLMPARITY_TESTS, cmd/llmparity/main_test.go).
PACKAGES = $(eval PACKAGES := $(shell go list ./...))$(PACKAGES)
BROWSERS = llmparity/browser llmparity/browser/webllm llmparity/browser/wllama llmparity/browser/transformersjs llmparity/browser/firefox
PAGES = llmparity/reports llmparity/reports/dashboard llmparity/cmd/llmparity
SERVERS = $(filter-out %/logs %/program %/wire,$(filter llmparity/native/%,$(PACKAGES))) llmparity/internal/models/modellib
RACED = $(filter-out $(SERVERS),$(filter llmparity/native/% llmparity/examples/% $(addprefix llmparity/internal/,\
	bench/% engine engine/% host/% record record/% models/catalogue models/npm),$(PACKAGES)))
PLAIN = $(filter-out $(BROWSERS) $(PAGES) $(SERVERS) $(RACED),$(PACKAGES))

# lint looks at these systems too. What is vetted is type-checked with its tests; what is built is linked.
VETTED = windows/amd64 darwin/arm64
BUILT = linux/arm64 darwin/amd64 windows/arm64
ON = GOOS=$${target%/*} GOARCH=$${target\#*/}

# Without optimisation, what is only compiled to be checked takes half as long.
FAST = -gcflags='all=-N -l'

.PHONY: setup build demo test browsers plain raced servers test-all vulnerabilities test-gpu bench accuracy mlc-proof lint clean

setup:
	@scripts/setup

# Building and linting need npm's parts alone; what runs needs the rest.
build:
	@scripts/setup npm
	@go build -o bin/llmparity ./cmd/llmparity

# The main job: the tiny model in WebLLM, in wllama and in llama.cpp, measured, compared, reported.
demo: setup build
	@bin/llmparity run --engines webllm,wllama,llamacpp

lint:
	@scripts/setup npm staticcheck
	@test -z "$$(gofmt -l $(FOLDERS))" || { echo "gofmt these files:"; gofmt -l $(FOLDERS); exit 1; }
	@go mod tidy -diff
	@go vet -tags slow ./...
	@go build -o bin/errorlint ./scripts/errorlint
	@go vet -vettool="$(CURDIR)/bin/errorlint" -tags slow ./...
	@$(CACHE)/staticcheck/current/staticcheck -tags slow ./...
	@go run ./scripts/lint
	@for target in $(VETTED); do $(ON) go vet $(FAST) -tags slow ./... || exit 1; done
	@for target in $(BUILT); do $(ON) go build $(FAST) -o /dev/null ./cmd/llmparity || exit 1; done

# A program with the race detector in it sleeps for a second at its end, and tests start hundreds of them.
test browsers raced servers test-all: export GORACE = atexit_sleep_ms=0

# Two at a time, one for each of two cores. One browser at a time: two on these cores would measure each other. A package
# may take longer than Go's ten minutes where others work too. All is tested, whatever failed before it: one answer
# tells everything. Lint comes last: by then most of what it needs is compiled.
test: setup
	@scripts/setup llamacpp-tools ollama huggingface staticcheck
	@$(MAKE) --no-print-directory -k -j2 browsers plain raced servers lint

# Lint vets all of it.
GO_TEST = go test -p 1 -vet=off -timeout 20m

browsers:
	@failed=0; \
	set -x; $(GO_TEST) -race $(BROWSERS) || failed=1; \
	LLMPARITY_TESTS=browser $(GO_TEST) $(PAGES) || failed=1; \
	exit $$failed

# The program "false" is found as a browser, and starts as none.
plain:
	$(GO_TEST) $(PLAIN)
	LLMPARITY_CHROME=false LLMPARITY_TESTS=light $(GO_TEST) llmparity/cmd/llmparity

raced:
	$(GO_TEST) -race $(RACED)
	LLMPARITY_TESTS=raced $(GO_TEST) -race llmparity/cmd/llmparity

servers:
	$(GO_TEST) -race $(SERVERS)

# Every test, those on a real model and on many versions of WebLLM too, and every fuzz test for longer than its seeds.
test-all: setup lint vulnerabilities
	@scripts/setup llamacpp-tools llamacpp-test llamacpp-operators ollama smollm2 vllm py-spy pandas xvfb lavapipe firefox podman
	@failed=0; \
	set -x; go test -race -tags slow $(RACED) $(filter-out llmparity/compare%,$(PLAIN)) || failed=1; \
	go test -tags slow ./compare/... || failed=1; \
	go test -race -p 1 -tags slow -timeout 120m $(BROWSERS) $(SERVERS) $(PAGES) || failed=1; \
	scripts/fuzz 20s || failed=1; \
	exit $$failed

# Known vulnerabilities that the program reaches. If their database does not answer, the check is skipped with a message.
vulnerabilities:
	@scripts/setup govulncheck
	@if out=$$($(CACHE)/govulncheck/current/govulncheck ./... 2>&1); then echo "$$out"; \
	else case $$out in *"fetching vulnerabilities"*) echo "skipped: $$out" ;; *) echo "$$out"; exit 1 ;; esac; fi

# What needs an NVIDIA GPU that nobody else uses, its driver, and a C compiler.
test-gpu:
	go test -v -count 1 -tags gpu -run CUDA ./internal/host/sample/gpu

# Figures about ourselves: an engine's speed measured against unmeasured, paired in one run; a real model converted and run; the report
# of a million samples.
bench: build
	@scripts/setup system python llamacpp llamacpp-tools ollama smollm2
	go test -run '^$$' -bench Spike -benchtime 1x -timeout 5m ./internal/host/sample
	go test -run '^$$' -tags slow -bench Watched -benchtime 1x -timeout 10m ./cmd/llmparity
	go test -run '^$$' -tags slow -bench Sampling -benchtime 1x -timeout 10m ./internal/bench/deepen
	go test -run '^$$' -tags slow -bench LlamaBench -benchtime 1x -timeout 30m ./native/llamacpp
	go test -run '^$$' -tags slow -bench KnownTimes -benchtime 1x -timeout 10m ./cmd/llmparity
	go test -run '^$$' -tags slow -bench 'Convert|Decode' -benchtime 3x -timeout 30m ./cmd/llmparity
	go test -run '^$$' -bench Perturbation -benchtime 1x -timeout 20m -p 1 ./browser/webllm ./browser/wllama ./browser/transformersjs
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
	rm -rf bin assets/node_modules assets/wllama/dist/wllama.* assets/bundle/dist/web-llm.js assets/bundle/dist/catalogue.json assets/transformersjs/dist/*.* assets/charts/dist/echarts.min.js assets/charts/dist/fflate.min.js
