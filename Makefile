# Every check is a step of .ci/run, so that a developer and CI run the same thing.
FUZZTIME ?= 30s
BENCHTIME ?= 1s

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the binary into bin/
	go build -trimpath -o bin/skalds ./cmd/skalds

.PHONY: run-dev
run-dev: ## Run a whole cluster in one process
	go run ./cmd/skalds dev

.PHONY: test
test: ## Run the tests that need nothing but Go
	go test ./...

.PHONY: race vet lint deadcode fmt tidy integration
race: ## Run the short tests under the race detector
vet: ## Run go vet
lint: ## Run golangci-lint (installed into a cache on first use)
deadcode: ## Find functions that no program calls (deadcode is installed into a cache on first use)
fmt: ## Check the formatting
tidy: ## Check that go.mod and go.sum are complete and nothing more
integration: ## Run the tests that need a real Kafka, Redis and MongoDB server
race vet lint deadcode fmt tidy integration:
	.ci/run $@

.PHONY: ci
ci: ## Run all that CI runs
	.ci/run

.PHONY: fuzz
fuzz: ## Fuzz every fuzz target for FUZZTIME (30s) each
	@go test -list '^Fuzz' ./... \
	| awk '/^Fuzz/ { targets[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, targets[i]; n = 0 }' \
	| while read -r package target; do \
		echo "$$package $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" </dev/null || exit 1; \
	done

.PHONY: bench
bench: ## Run every Go benchmark for BENCHTIME (1s) each
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

# How long the random faults of `make chaos` go on, and which they are; without a seed, it is taken from the clock and printed.
CHAOS_DURATION ?= 10m
CHAOS_SEED ?=

.PHONY: chaos
chaos: ## Kill, freeze and cut off real processes for CHAOS_DURATION (10m), and run the directed cases in full
	SKALDS_INTEGRATION=1 CHAOS_DURATION=$(CHAOS_DURATION) CHAOS_SEED=$(CHAOS_SEED) go test -count=1 -timeout 0 -v ./test/chaos/...

.PHONY: cover
cover: ## Measure the coverage of the unit tests, into coverage.out and coverage.html
	go test -coverpkg=./... -coverprofile=coverage.out ./...
	go tool cover -func=coverage.out | tail -n 1
	go tool cover -html=coverage.out -o coverage.html

.PHONY: clean
clean: ## Remove what the other targets made
	rm -rf bin coverage.out coverage.html
