# What a change must pass is `make test`; `make demo` shows the product at work.
GO ?= go

# Where the environment names no home, Go's caches go to the user's own.
ifeq ($(HOME),)
export HOME := $(shell eval echo "~$$(id -un)")
endif

.PHONY: build demo test check long bench fmt lint
build:
	$(GO) build -o bin/ ./cmd/...

demo:
	$(GO) run ./cmd/roundtable demo

# Installs what the tests need and the machine lacks, then runs everything.
test:
	./tools/install.sh
	$(MAKE) check

check: fmt lint
	$(GO) test -race -timeout 20m ./...

fmt:
	@test -z "$$(gofmt -l . | tee /dev/stderr)"

lint:
	$(GO) vet ./...
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

# The slow proofs: more seeds, more kills, longer histories. Run by hand.
long:
	ROUNDTABLE_LONG=1 $(GO) test -timeout 120m ./...

bench:
	$(GO) run ./cmd/roundtable bench append
	$(GO) run ./cmd/roundtable bench replay
