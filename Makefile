# `make demo` and `make test` are the two commands; both install (as root on Debian or Ubuntu) or check all they need.

CARGO ?= cargo
BROWNOUT = target/release/brownout

.PHONY: demo test test-long lint unit bench require-bench build clean help

help:
	@echo "make demo    one slow replica of three: two blocks of trials, proven, measured, shown (about 4 minutes)"
	@echo "make test    lint and all tests: real namespaces, real Cassandra, a real browser (root, or user namespaces)"
	@echo "make test-long  what only repeats: more versions of Cassandra, every fault sabotaged, more of the same"
	@echo "make lint    formatting, clippy, licences"
	@echo "make bench   programs that measure us beside others; they print ratios"
	@echo "make build   target/release/brownout"

demo:
	@scripts/require run
	$(CARGO) build --release --locked -p brownout
	$(BROWNOUT) run experiments/slow-replica.yaml

build:
	$(CARGO) build --release --locked -p brownout

test:
	@scripts/require test
	$(MAKE) lint
	$(MAKE) unit

unit:
	scripts/tests

test-long:
	@scripts/require test
	scripts/tests --ignored

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --locked --workspace --all-targets -- --deny warnings
	scripts/licences

require-bench:
	@scripts/require bench

# What the load is measured beside; built once. BROWNOUT_CASSANDRA_STRESS and BROWNOUT_CQL_STRESS name further peers.
export LATTE ?= $(CURDIR)/target/peers/bin/latte
export BROWNOUT_SCYLLA_BENCH ?= $(CURDIR)/target/peers/bin/scylla-bench

# `make bench QUICK=--quick` is brief.
bench: require-bench
	scripts/peers
	$(CARGO) build --release --locked -p brownout
	BROWNOUT=$(CURDIR)/$(BROWNOUT) $(CARGO) bench --locked -p brownout-stress --bench client_cost -- $(QUICK)
	BROWNOUT=$(CURDIR)/$(BROWNOUT) $(CARGO) bench --locked -p brownout-stress --bench honesty -- $(QUICK)
	$(CARGO) bench --locked -p brownout-network --bench emulator_vs_veth
	$(CARGO) bench --locked -p brownout-clock --bench clock_call
	$(CARGO) bench --locked -p brownout-disk --bench passthrough

clean:
	$(CARGO) clean
