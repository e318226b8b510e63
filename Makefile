# `make demo` and `make test` are the two commands; both install (as root on Debian or Ubuntu) or check all they need.

CARGO ?= cargo
BROWNOUT = target/release/brownout

.PHONY: demo demos test test-long test-kubernetes lint format unit bench require-bench require-etcd require-overlays build image clean help
.PHONY: study-build study-slow-and-flaky study-slow-and-flaky-long study-slow-and-flaky-zones study-noise-floor \
	study-search-against-grid study-killed-twice study-slow-and-flaky-etcd-quick study-slow-and-flaky-etcd study-slow-and-flaky-etcd-zones \
	study-virtual-network study-topologies-and-clocks study-topologies-and-clocks-latencies study-topologies-and-clocks-clocks

help:
	@echo "make demo    one slow replica of three: two blocks of trials, proven, measured, shown (about 4 minutes)"
	@echo "make demos   ten demos in a row: is each of them valid on this machine? (about 40 minutes)"
	@echo "make test    lint and all tests: real namespaces, real Cassandra, a real browser (root, or user namespaces)"
	@echo "make test-long  what only repeats: more versions of Cassandra, every fault sabotaged, more of the same"
	@echo "make test-kubernetes  the same on pods of a real Kubernetes, which it builds once (five minutes)"
	@echo "make lint    formatting, clippy, licences"
	@echo "make bench   programs that measure us beside others; they print ratios"
	@echo "make build   target/release/brownout"
	@echo "make image   target/brownout-image.tar, a container image of it"
	@echo "make study-slow-and-flaky  a published experiment done again, in brief (about 7 minutes)"
	@echo "make study-slow-and-flaky-long, -zones  the same at length (115 and 140 minutes): makes studies/slow-and-flaky anew"
	@echo "make study-slow-and-flaky-etcd-quick  the same on etcd, leader and follower, in brief (about four minutes)"
	@echo "make study-slow-and-flaky-etcd, -etcd-zones  the same at length (90 and 130 minutes)"
	@echo "make study-virtual-network  overlays and encryption beside published figures, in brief (about seven minutes)"
	@echo "make study-virtual-network-closed-r1, -closed-r3-one, -closed-r3-quorum, -open-r1, …  the same at length (140 minutes each)"
	@echo "make study-topologies-and-clocks  three topologies, their clocks, writes lost to them, in brief (about seven minutes)"
	@echo "make study-topologies-and-clocks-latencies, -clocks  the same at length (90 minutes each)"
	@echo "make study-noise-floor     20 pairs of equal trials on real Cassandra: how many are called different? (about 85 minutes)"
	@echo "make study-search-against-grid  does a search find what a grid of thrice as many trials does? (about 75 minutes)"
	@echo "make study-killed-twice    a design of 80 trials, and the same killed twice: are the verdicts the same? (about 95 minutes)"

demo:
	@scripts/require run
	$(CARGO) build --release --locked -p brownout
	$(BROWNOUT) run experiments/slow-replica.yaml

# Ten of them, about 40 minutes; `make demos DEMOS="3 30"` is three, beside programs that take 30 % of each processor.
demos: build
	scripts/demos $(DEMOS)

build:
	$(CARGO) build --release --locked -p brownout

image: build
	scripts/image brownout:$(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1) target/brownout-image.tar $(BROWNOUT)

test:
	@scripts/require test
	$(MAKE) format
	$(MAKE) unit

unit:
	scripts/tests

test-long:
	@scripts/require test
	@scripts/require long
	@# Where there is none, tests of Cassandra 3.11 say so, and are left out.
	@scripts/java8 >/dev/null || true
	scripts/tests --ignored

test-kubernetes:
	@scripts/require test
	@scripts/require kubernetes
	scripts/test-kubernetes

lint: format
	$(CARGO) clippy --profile tested --locked --workspace --all-targets -- --deny warnings

format:
	$(CARGO) fmt --all --check
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
	$(CARGO) bench --locked -p brownout-load --bench etcd_put -- $(QUICK)
	$(CARGO) bench --locked -p brownout-network --bench emulator_vs_veth
	$(CARGO) bench --locked -p brownout-network --bench overlays
	$(CARGO) bench --locked -p brownout-network --bench ways
	BROWNOUT=$(CURDIR)/$(BROWNOUT) $(CARGO) bench --locked -p brownout-lab --bench fleet
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

require-etcd:
	@scripts/require etcd

require-overlays:
	@scripts/require overlays

study-slow-and-flaky-etcd-quick: require-etcd study-build
	studies/slow-and-flaky/run etcd-quick

study-slow-and-flaky-etcd: require-etcd study-build
	studies/slow-and-flaky/run etcd

study-slow-and-flaky-etcd-zones: require-etcd study-build
	studies/slow-and-flaky/run etcd-zones

study-virtual-network: require-overlays study-build
	studies/virtual-network/run quick

# closed-r1, closed-r3-one, closed-r3-quorum, open-r1, open-r3-one, open-r3-quorum
study-virtual-network-%: require-overlays study-build
	studies/virtual-network/run $*

study-topologies-and-clocks: study-build
	studies/topologies-and-clocks/run quick

study-topologies-and-clocks-latencies: study-build
	studies/topologies-and-clocks/run latencies

study-topologies-and-clocks-clocks: study-build
	studies/topologies-and-clocks/run clocks

study-noise-floor: study-build
	studies/noise-floor/run

study-search-against-grid: study-build
	studies/search-against-grid/run

study-killed-twice: study-build
	studies/killed-twice/run

clean:
	$(CARGO) clean
