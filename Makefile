# SPDX-License-Identifier: Apache-2.0
#
# Makefile - the short names for what is done with Meson. Every target installs what it lacks (scripts/deps.sh),
# configures a build folder of its own if there is none, builds and runs. Meson files say how things are built.
#
#   BUILD=dir        prefix of the build folders (build, build-asan, ...)
#   JOBS=n           parallel compile jobs
#   SUITE="names"    only these Meson suites (unit, emu, fabric, rules, ...), for test, asan, ubsan, tsan and coverage
#   CC=cc            compiler of a folder that is not configured yet
#   MESON_FLAGS=...  more flags for "meson setup"
#   BRAID_QUICK=1    fewer seeds in tests that repeat a check over many
#   FUZZ_SECONDS=n   time for each fuzz target
#   SEEDS=n          seeds of each litmus test, mode and number of ports

BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
SUITE ?=
MESON_FLAGS ?=
FUZZ_SECONDS ?= 20
SEEDS ?= 10000
comma := ,

# Runs the tests and ends with "N passed, N failed", counting the checks inside each program.
RUN_TESTS = scripts/run-tests.py --jobs $(JOBS) $(if $(SUITE),$(addprefix --suite ,$(SUITE)),--no-suite soak --no-suite rxe)

# $(call configure,folder,meson flags): configures once, quietly; later changes are picked up by ninja itself.
configure = test -f $(1)/build.ninja || { mkdir -p $(1) && meson setup $(MESON_FLAGS) $(2) $(1) >$(1)/setup.log 2>&1; } || \
	{ cat $(1)/setup.log; exit 1; }

# Sanitizers: libraries may have undefined symbols then (the runtime is in the program).
SAN_FLAGS = -Db_lundef=false -Dbuildtype=debugoptimized

.DEFAULT_GOAL := help
.PHONY: help build demo results study costs live test test-rxe soak litmus lint asan ubsan tsan coverage fuzz clean install

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

build: ## compiles everything into build/
	@scripts/deps.sh build
	@$(call configure,$(BUILD))
	@ninja -C $(BUILD) -j $(JOBS)

demo: ## two nodes, two ports: one port, drain and braid side by side, on the emulated fabric
	@scripts/deps.sh demo
	@$(call configure,$(BUILD))
	@ninja -C $(BUILD) -j $(JOBS)
	@$(BUILD)/cli/braid demo

results: ## every rate that is promised, as one `braid bench` command each, written to docs/results.md
	@scripts/deps.sh demo
	@$(call configure,$(BUILD))
	@ninja -C $(BUILD) -j $(JOBS) --quiet
	@scripts/results.py $(BUILD); one=$$?; scripts/results_moe.py $(BUILD) && exit $$one

study: ## the figures of docs/why-four-nodes.md: one constant fitted, the rest predicted; needs NVIDIA's plugin
	@scripts/deps.sh demo
	@$(call configure,$(BUILD))
	@ninja -C $(BUILD) -j $(JOBS) --quiet
	@scripts/study_moe.py $(BUILD)

costs: ## libbraid's own instructions, counted by callgrind, beside what the cost table charges, written to docs/costs.md
	@scripts/deps.sh demo costs
	@$(call configure,$(BUILD))
	@ninja -C $(BUILD) -j $(JOBS) --quiet
	@scripts/callgrind-costs.py $(BUILD) --write

live: ## 16 processes (mpirun) on emulated ports of 10 MB/s in real time: two ports against one
	@scripts/deps.sh demo live
	@$(call configure,$(BUILD))
	@ninja -C $(BUILD) -j $(JOBS) --quiet
	@scripts/live.py $(BUILD)

test: ## the whole test suite, without the long "soak" tests
	@scripts/deps.sh test
	@$(call configure,$(BUILD))
	@$(RUN_TESTS) $(BUILD)

test-rxe: ## tests on real kernel verbs: soft-RoCE devices in an emulated VM (qemu, no KVM needed); BRAID_QUICK=1: the quick form
	@scripts/deps.sh test rxe
	@$(call configure,$(BUILD))
	@tests/rxe/rig.sh build
	@scripts/run-tests.py --jobs $(JOBS) --suite rxe $(BUILD)

soak: ## the long tests
	@scripts/deps.sh test
	@$(call configure,$(BUILD))
	@scripts/run-tests.py --jobs $(JOBS) --suite soak $(BUILD)

litmus: ## litmus tests of order, SEEDS each, over all cores; then each rule off, which must show
	@scripts/deps.sh test
	@$(call configure,$(BUILD))
	@ninja -C $(BUILD) -j $(JOBS) --quiet
	@$(BUILD)/tests/litmus/litmus --count $(SEEDS) --with-counts --with-faults 300 --jobs $(JOBS)

lint: ## format, clang-tidy, cppcheck, shellcheck, licence lines, white space, man pages, forbidden words
	@scripts/deps.sh lint
	@CC=clang; export CC; $(call configure,$(BUILD)-lint)
	@ninja -C $(BUILD)-lint --quiet build.ninja
	@JOBS=$(JOBS) scripts/lint.sh $(BUILD)-lint

asan: ## the test suite under AddressSanitizer (and leak check)
	@scripts/deps.sh test sanitize
	@$(call configure,$(BUILD)-asan,$(SAN_FLAGS) -Db_sanitize=address)
	@ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=0:abort_on_error=0:halt_on_error=1 \
		$(RUN_TESTS) --slower 4 $(BUILD)-asan

ubsan: ## the test suite under UndefinedBehaviorSanitizer
	@scripts/deps.sh test sanitize
	@$(call configure,$(BUILD)-ubsan,$(SAN_FLAGS) -Db_sanitize=undefined -Dc_args=-fno-sanitize-recover=all)
	@UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 $(RUN_TESTS) --slower 3 $(BUILD)-ubsan

tsan: ## the test suite under ThreadSanitizer
	@scripts/deps.sh test sanitize
	@$(call configure,$(BUILD)-tsan,$(SAN_FLAGS) -Db_sanitize=thread)
	@TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 $(RUN_TESTS) --slower 10 $(BUILD)-tsan

coverage: ## lines reached by the test suite: total here, pages in build-coverage/html
	@scripts/deps.sh test coverage
	@$(call configure,$(BUILD)-coverage,-Db_coverage=true -Dbuildtype=debug)
	@find $(BUILD)-coverage -name '*.gcda' -delete
	@mkdir -p $(BUILD)-coverage/html
	@rc=0; $(RUN_TESTS) $(BUILD)-coverage || rc=1; \
	gcovr --root . --object-directory $(BUILD)-coverage --filter src/ --filter emu/ --filter bench/ --filter cli/ \
		--sort-percentage --txt $(BUILD)-coverage/files.txt \
		--print-summary --html-details $(BUILD)-coverage/html/index.html && exit $$rc

fuzz: ## every fuzz target for FUZZ_SECONDS seconds, under ASan and UBSan
	@scripts/deps.sh fuzz
	@CC=clang; export CC; $(call configure,$(BUILD)-fuzz,$(SAN_FLAGS) -Db_sanitize=address$(comma)undefined -Dfuzz=true)
	@ninja -C $(BUILD)-fuzz -j $(JOBS) --quiet fuzzers
	@JOBS=$(JOBS) scripts/fuzz.sh $(BUILD)-fuzz $(FUZZ_SECONDS)

install: build ## installs into Meson's prefix (DESTDIR is honoured)
	@meson install -C $(BUILD)

clean: ## removes the build folders
	@rm -rf $(BUILD) $(BUILD)-lint $(BUILD)-asan $(BUILD)-ubsan $(BUILD)-tsan $(BUILD)-coverage $(BUILD)-fuzz
