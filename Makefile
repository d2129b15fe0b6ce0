# ticktier: everything that is built, tested or measured goes through here.

GO      ?= go
BIN     ?= bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# One set of build flags for programs, tests and peers: one build cache serves all.
export CGO_ENABLED ?= 0
export GOFLAGS += -trimpath

# What routers have no room for: HTTP/2, for remote write is HTTP/1.1, and profiles
# (docs/decisions/0008). EXPORTER_TAGS=nethttpomithttp2 has --debug.pprof.
EXPORTER_TAGS ?= nethttpomithttp2,nopprof

# Packages that run seldom are compiled without inlining, which is smaller.
EXPORTER_SELDOM := $(addprefix github.com/ticktier/ticktier/,exporter/config exporter/flags exporter/follow exporter/plot \
	exporter/scrape exporter/selector exporter/spool exporter/top collectors/promtext)
EXPORTER_GCFLAGS ?= $(foreach p,net net/http net/url crypto/tls crypto/x509 math/big encoding/... mime/... regexp/... log/... vendor/... text/tabwriter fmt bufio path/... hash/... compress/... os/... github.com/spf13/pflag golang.org/x/image/... \
	$(EXPORTER_SELDOM),-gcflags=$(p)=-l)

# make run
RUN_DATA            ?= ./data
RUN_RATE            ?= 10
RUN_ADAPTER_LISTEN  ?= :9748
RUN_EXPORTER_LISTEN ?= :9747

# make test, race, e2e
TESTFLAGS   ?=
PKG         ?= $$($(GO) list ./... | grep -v '/e2e$$')
E2E_RUN     ?= .
E2E_TIMEOUT ?= 40m

# make fuzz, bench, load; BENCHFLAGS=-quick takes a minute, not a quarter of an hour; LOADFLAGS=-soak=1h
# is a soak, -soak=2m its short form
FUZZTIME ?= 30s
BENCH    ?= .
COUNT    ?= 6
BENCHPKG ?= ./...
BENCHFLAGS ?=
QUERYBENCHFLAGS ?= $(BENCHFLAGS)
WIREBENCHFLAGS ?= $(BENCHFLAGS)
LOADFLAGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## this machine sampled 10 times a second, stored and shown; Ctrl-C stops (RUN_DATA= RUN_RATE= RUN_ADAPTER_LISTEN= RUN_EXPORTER_LISTEN=)
	@$(GO) build -o $(BIN)/ticktier-run ./e2e/run
	@exec $(BIN)/ticktier-run -bin '$(BIN)' -data '$(RUN_DATA)' -rate '$(RUN_RATE)' \
		-adapter.listen '$(RUN_ADAPTER_LISTEN)' -exporter.listen '$(RUN_EXPORTER_LISTEN)'

.PHONY: build
build: build-exporter ## both programs into bin/
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/ticktier-adapter ./adapter

.PHONY: build-exporter
build-exporter: ## the exporter alone
	@mkdir -p $(BIN)
	$(GO) build -tags $(EXPORTER_TAGS) $(EXPORTER_GCFLAGS) -ldflags '$(LDFLAGS)' -o $(BIN)/ticktier-exporter ./exporter

.PHONY: test
test: unit e2e ## unit tests, then e2e (TESTFLAGS=)

.PHONY: unit
unit: ## unit tests only (PKG= TESTFLAGS=)
	$(GO) test $(TESTFLAGS) $(PKG)

.PHONY: race
race: ## unit tests under the race detector (PKG=)
	CGO_ENABLED=1 $(GO) test -race $(TESTFLAGS) $(PKG)

.PHONY: lint
lint: ## gofmt, go vet, staticcheck
	@files=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go' 2>/dev/null || find . -name '*.go')); \
		if [ -n "$$files" ]; then echo "not formatted (gofmt -w):"; echo "$$files"; exit 1; fi
	@# chunkenc.Iterator has a Seek that is not io.Seeker's.
	$(GO) vet -stdmethods=false ./...
	$(GO) tool staticcheck ./...

.PHONY: fuzz
fuzz: ## every fuzz target in turn (FUZZTIME=30s PKG=)
	@set -e; for pkg in $(PKG); do \
		dir=$$($(GO) list -f '{{.Dir}}' $$pkg); \
		for target in $$(cat $$dir/*_test.go 2>/dev/null | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' | sort -u); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$pkg; \
		done; \
	done

.PHONY: golden
golden: ## rewrite the golden files; review the diff by eye
	@set -e; for dir in $$(grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -r -n1 dirname | sort -u); do \
		$(GO) test $$dir -update; \
	done

.PHONY: bench
bench: build bench-tick bench-query bench-wire ## benchmarks, with what they ran on (BENCH= BENCHPKG= COUNT= BENCHFLAGS=)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(BENCHPKG)

.PHONY: bench-tick
bench-tick: build ## what a tick costs, beside the bare reads and node_exporter (BENCHFLAGS=-quick)
	@$(GO) build -o $(BIN)/ticktier-bench ./e2e/bench
	@$(BIN)/ticktier-bench -bin '$(BIN)' -json $(BIN)/bench.json $(BENCHFLAGS)

.PHONY: bench-query
bench-query: build peers ## what a chart costs, beside Prometheus and VictoriaMetrics (QUERYBENCHFLAGS=-quick)
	@$(GO) build -o $(BIN)/ticktier-querybench ./e2e/querybench
	@$(BIN)/ticktier-querybench -bin '$(BIN)' $(QUERYBENCHFLAGS)

.PHONY: bench-wire
bench-wire: build peers ## bytes and CPU a sample sent, beside Prometheus' agent and vmagent (WIREBENCHFLAGS=-quick)
	@$(GO) build -o $(BIN)/ticktier-wirebench ./e2e/wirebench
	@$(BIN)/ticktier-wirebench -bin '$(BIN)' $(WIREBENCHFLAGS)

.PHONY: bench-compare
bench-compare: ## benchmarks of a commit and of this tree, compared (REF= BENCH= BENCHPKG= COUNT=)
	@[ -n "$(REF)" ] || { echo "bench-compare: say which commit to compare with: make bench-compare REF=main"; exit 2; }
	@sh e2e/machine.sh
	@set -e; tmp=$$(mktemp -d); trap 'git worktree remove --force "$$tmp/ref" 2>/dev/null || true; rm -rf "$$tmp"' EXIT INT TERM; \
		git worktree add --quiet --detach "$$tmp/ref" "$(REF)"; \
		echo "bench-compare: $(REF)"; \
		( cd "$$tmp/ref" && $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(BENCHPKG) ) >"$$tmp/old.txt" || { cat "$$tmp/old.txt"; exit 1; }; \
		echo "bench-compare: this tree"; \
		$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(BENCHPKG) >"$$tmp/new.txt" || { cat "$$tmp/new.txt"; exit 1; }; \
		$(GO) tool benchstat "$(REF)=$$tmp/old.txt" "tree=$$tmp/new.txt"

.PHONY: load
load: build ## the built programs under load, with what they cost (LOADFLAGS=)
	@sh e2e/machine.sh
	$(GO) run ./e2e/load -bin '$(BIN)' $(LOADFLAGS)

.PHONY: e2e
e2e: build peers chromium alertmanager iproute ## the built programs against the real peers (E2E_RUN= TESTFLAGS= E2E_TIMEOUT=)
	TICKTIER_E2E_BIN='$(abspath $(BIN))' TICKTIER_E2E_PEERS="$$(e2e/peers/build.sh)" \
		$(GO) test -count=1 -parallel 3 -timeout $(E2E_TIMEOUT) -run '$(E2E_RUN)' $(TESTFLAGS) ./e2e

.PHONY: peers
peers: ## Prometheus, promtool, VictoriaMetrics, node_exporter, cached outside the checkout
	@e2e/peers/build.sh

.PHONY: chromium
chromium: ## a browser for e2e: the one that is installed, or Debian's package
	@sh e2e/chromium.sh

.PHONY: iproute
iproute: ## ip and tc for e2e: those that are installed, or Debian's package
	@sh e2e/iproute.sh

.PHONY: alertmanager
alertmanager: ## a real Alertmanager for e2e: the one that is installed, or Debian's package
	@sh e2e/alertmanager.sh

.PHONY: size
size: ## stripped size of both programs on each platform; the exporter on arm64 has a budget
	@sh e2e/size.sh '$(LDFLAGS)' '$(EXPORTER_TAGS)' '$(EXPORTER_GCFLAGS)'

.PHONY: clean
clean: ## remove what was built; ./data stays
	rm -rf bin
