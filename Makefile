# `make demo` and `make test` are the two commands; both install (as root on Debian or Ubuntu) or check all they need.

CARGO ?= cargo
BROWNOUT = target/release/brownout

.PHONY: demo test test-long lint unit bench require-bench build clean help
.PHONY: study-build study-slow-and-flaky study-slow-and-flaky-long study-slow-and-flaky-zones study-noise-floor \
	study-search-against-grid

help:
	@echo "make demo    one slow replica of three: two blocks of trials, proven, measured, shown (about 4 minutes)"
	@echo "make test    lint and all tests: real namespaces, real Cassandra, a real browser (root, or user namespaces)"
	@echo "make test-long  what only repeats: more versions of Cassandra, every fault sabotaged, more of the same"
	@echo "make lint    formatting, clippy, licences"
	@echo "make bench   programs that measure us beside others; they print ratios"
	@echo "make build   target/release/brownout"
	@echo "make study-slow-and-flaky  a published experiment done again, in brief (about 7 minutes)"
	@echo "make study-slow-and-flaky-long, -zones  the same at length (hours): makes studies/slow-and-flaky anew"
	@echo "make study-noise-floor     20 pairs of equal trials on real Cassandra: how many are called different? (about 85 minutes)"
	@echo "make study-search-against-grid  does a search find what a grid of thrice as many trials does? (about 75 minutes)"

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
	$(CARGO) bench --locked -p brownout-machine --bench idle
	$(CARGO) bench --locked -p brownout-clock --bench clock_call
	$(CARGO) bench --locked -p brownout-disk --bench passthrough

study-build:
	@scripts/require run
	$(CARGO) build --release --locked -p brownout -p brownout-studies

study-slow-and-flaky: study-build
	studies/slow-and-flaky/run quick

study-slow-and-flaky-long: study-build
	studies/slow-and-flaky/run long

study-slow-and-flaky-zones: study-build
	studies/slow-and-flaky/run zones

study-noise-floor: study-build
	studies/noise-floor/run

study-search-against-grid: study-build
	studies/search-against-grid/run

clean:
	$(CARGO) clean
