# What the project does to itself. It needs Go; .ci/tools says what some tests need besides, conformance needs npm.

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.9.0
VERSION ?=

.PHONY: build test test-all test-busy race bench lint vuln generate drift conformance fuzz torture

# The same flags for the compiler as "go run" has, so that neither compiles again what the
# other did; -trimpath, which does not, is for what is released.
build:
	$(GO) build -ldflags "-s -w -X main.version=$(VERSION)" -o bin/aegis ./cmd/aegis

# All tests, slow kinds in a small form: fewer outages, kills and generated documents.
# Where tools beside Go are missing, .ci/tools says what it does about it.
TESTFLAGS ?=
test:
	@.ci/tools tests
	@.ci/progress $(GO) test -timeout 30m $(TESTFLAGS) ./...
	@$(GO) test -tags purego $(TESTFLAGS) ./proxy/internal/jsonscan # what other processors run

# The whole form of those that have two; the others come from the cache after "make test".
test-all: export AEGIS_TEST_WHOLE = 1
test-all: test

# "make test" ten times in a row on a machine that is busy with something else.
RUNS ?= 10
test-busy:
	@MAKE="$(MAKE)" .ci/busy $(RUNS)

# The same tests under the race detector, which needs a C compiler; without those of
# several processes, which it cannot see into.
race:
	$(GO) test -race -short -count=1 -timeout 30m ./...

# Benchmarks side by side: Gitea alone, a plain reverse proxy, and Aegis.
bench:
	$(GO) run ./cmd/bench
	$(GO) test -run '^$$' -bench Calls ./proxy/audit
	GOMAXPROCS=1 $(GO) test -run '^$$' -bench 'Ratios|Adversarial|Small' -benchtime 15x ./proxy/mask

# Masking beside gitleaks on the same bytes; a module of its own, with gitleaks'
# dependencies. Takes some minutes: gitleaks is slow on long lines.
.PHONY: bench-gitleaks torture
bench-gitleaks:
	mkdir -p bin/corpora
	$(GO) test -count=1 -run WriteCorpora ./proxy/mask -write-corpora $(CURDIR)/bin/corpora
	cd cmd/bench/gitleaks && CORPORA=$(CURDIR)/bin/corpora GOMAXPROCS=1 \
		$(GO) test -run '^$$' -bench . -benchtime 3x -timeout 30m .

# Kills the real program 200 times under load and verifies its audit log.
torture:
	AEGIS_TEST_WHOLE=1 $(GO) test -count=1 -run KilledUnderLoad -v -timeout 30m ./cmd/aegis

# All of staticcheck's checks, with these off:
#   ST1000  a package comment in each package is held by our own test, which also
#           wants exactly one.
#   ST1020, ST1021, ST1022  they want a comment to begin with the name; ours do
#           where that reads well, and a test holds that the comment is there.
#   ST1005  error texts for operators may end in a full sentence.
CHECKS = all,-ST1000,-ST1005,-ST1020,-ST1021,-ST1022
lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these files"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags deploy ./deploy/...
	$(GO) run $(STATICCHECK) -checks "$(CHECKS)" ./...
	$(GO) run $(STATICCHECK) -checks "$(CHECKS)" -tags deploy ./deploy/...

# What people install: binaries for all platforms, archives, packages, checksums, bills
# of materials in dist/, signed where a key is (see deploy/release). VERSION is 1.2.3, or
# the tag of the commit.
.PHONY: release packages image deploy-test
release:
	$(GO) run ./deploy/release -packages -version "$(VERSION)"

# The same for Linux alone.
packages:
	$(GO) run ./deploy/release -packages -only linux -version "$(VERSION)"

IMAGE_BUILDER ?= docker
image:
	$(IMAGE_BUILDER) build --build-arg VERSION="$(or $(VERSION),0.0.0-dev)" \
	  --build-arg REVISION="$$(git rev-parse HEAD)" --build-arg CREATED="$$(git log -1 --format=%cI)" \
	  -t aegis:$(or $(VERSION),latest) .

# Chart, compose files, alerts, packages, unit and image with the real tools; needs root
# and the packages of Debian that .ci/run names.
deploy-test:
	$(GO) test -count=1 -tags deploy -timeout 30m ./deploy/...

# Known vulnerabilities of the dependencies; asks a database on the internet.
vuln:
	$(GO) run $(GOVULNCHECK) ./...

generate:
	$(GO) generate ./...

# Generated files must be what their generators make.
drift: generate
	git diff --exit-code -- spec docs config

# The official MCP conformance suite; needs npm, and brings its own Node.js.
conformance:
	npm --prefix cmd/conformance ci
	$(GO) run ./cmd/conformance

# The browser tests alone, with pictures of every page in SCREENSHOTS; needs Chromium
# (Debian's package chromium-headless-shell).
.PHONY: browser
SCREENSHOTS ?= $(or $(TMPDIR),/tmp)/aegis-screenshots
browser:
	mkdir -p $(SCREENSHOTS)
	AEGIS_TEST_TOOLS=must AEGIS_TEST_SCREENSHOTS=$(SCREENSHOTS) $(GO) test -count=1 ./proxy/server/browser

# A short run of every fuzz target, with the runs per second of each.
FUZZTIME ?= 10s
PKG ?= ./...
fuzz:
	@GO="$(GO)" .ci/fuzz $(FUZZTIME) $(PKG)
