# Every target prepares what it needs by itself; see tools/setup.sh.

VENV ?= .venv
BUILD ?= build
FUZZ_SECONDS ?= 60
MESON = $(VENV)/bin/meson
PYTHON_BIN = $(VENV)/bin/python
TEST_ENV = TEST_BUILD_DIR=$(abspath $(1)) PYTHONPATH=$(abspath $(1))/python
PYTEST = $(PYTHON_BIN) -m pytest -q
# Where tests with frameworks run side by side, each has one core.
ONE_THREAD = OMP_NUM_THREADS=1
# One build folder has the extension for every Python that tools/setup.sh found.
FOR_PYTHONS = -Dpython=enabled -Dpythons="$$(tools/pythons.sh ,)"

# The tools of the virtual environment find each other by PATH.
export PATH := $(abspath $(VENV))/bin:$(PATH)

export ASAN_OPTIONS ?= detect_leaks=1:halt_on_error=1:abort_on_error=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS ?= halt_on_error=1:abort_on_error=1:print_stacktrace=1
export TSAN_OPTIONS ?= halt_on_error=1:abort_on_error=1:second_deadlock_stack=1

C_FILES = $(shell find include src python tests bench examples -name '*.[ch]' | sort)
FUZZ_TARGETS = $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))

.DEFAULT_GOAL := help
.PHONY: help demo test check build install-deps lint tidy format bench bench-check \
	sanitize sanitize-address sanitize-thread sanitize-python valgrind-python \
	test-pythons test-findings cross fuzz docs zoo claims clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

# Configures folder $(1) with options $(2), again only when they have changed.
configure = tools/configure.sh $(MESON) $(1) $(2)

DEV_OPTIONS = -Dwerror=true -Dtests=enabled $(FOR_PYTHONS)

demo: ## build, run a small training under the recorder, show the report
	@tools/setup.sh demo
	@test -f $(BUILD)/build.ninja || $(call configure,$(BUILD),-Dpython=enabled)
	@$(VENV)/bin/ninja -C $(BUILD) --quiet
	STEPWATCH_PYTHON=$(PYTHON_BIN) $(BUILD)/src/cli/stepwatch run examples/python/train.py

build: ## build everything in build/, warnings are errors
	@tools/setup.sh test
	@$(call configure,$(BUILD),$(DEV_OPTIONS))
	@$(VENV)/bin/ninja -C $(BUILD) --quiet

install-deps: ## install what every target needs
	@tools/setup.sh demo test extra sanitize fuzz tidy bench valgrind

test: build lint ## everything a change must pass
	@tools/setup.sh extra
	tools/meson_twice.sh $(MESON) $(BUILD) --no-rebuild --print-errorlogs
	$(call TEST_ENV,$(BUILD)) tools/pytest_twice.sh $(PYTEST) -m "not frameworks and not timed"
	$(call TEST_ENV,$(BUILD)) $(ONE_THREAD) tools/pytest_twice.sh $(PYTEST) -m frameworks -n auto \
		--dist loadfile --timeout 300
	@$(call TEST_ENV,$(BUILD)) tools/test_pythons.sh

test-pythons: build ## the tests of the extension with every further Python there is here
	@$(call TEST_ENV,$(BUILD)) tools/test_pythons.sh

check: test ## the same as test

lint: build ## format, layers, headers, Python, spelling
	@$(VENV)/bin/clang-format --dry-run -Werror $(C_FILES)
	@$(PYTHON_BIN) tools/check_layers.py
	@$(PYTHON_BIN) tools/check_sources.py
	@$(MESON) test -C $(BUILD) --no-rebuild --suite headers --quiet --print-errorlogs
	@$(VENV)/bin/ruff check --quiet
	@$(VENV)/bin/ruff format --check --quiet
	@$(VENV)/bin/mypy --no-error-summary
	@$(VENV)/bin/codespell
	@bash -n .ci/run tools/*.sh completions/*.bash
	@echo "lint: ok"

tidy: build ## clang-tidy over the sources
	@tools/setup.sh test tidy
	@$(PYTHON_BIN) tools/run_tidy.py $(BUILD)

format: ## rewrite C and Python sources in the style of the project
	@tools/setup.sh test
	$(VENV)/bin/clang-format -i $(C_FILES)
	$(VENV)/bin/ruff check --quiet --fix-only
	$(VENV)/bin/ruff format --quiet

BENCH_OPTIONS = -Dbench=enabled -Db_ndebug=true $(FOR_PYTHONS)
# Some suites only: make bench-check SUITES="python_sections python_lines".
SUITES ?=

bench: ## measure the recorder, the reader and the Python side
	@tools/setup.sh test extra bench
	@$(call configure,build-bench,$(BENCH_OPTIONS))
	@$(VENV)/bin/ninja -C build-bench --quiet
	$(call TEST_ENV,build-bench) $(PYTHON_BIN) bench/run.py --build build-bench $(SUITES)

bench-check: ## measure, and fail where a promised ratio does not hold
	@tools/setup.sh test extra bench
	@$(call configure,build-bench,$(BENCH_OPTIONS))
	@$(VENV)/bin/ninja -C build-bench --quiet
	$(call TEST_ENV,build-bench) $(PYTHON_BIN) bench/run.py --build build-bench --check $(SUITES)

test-findings: build ## findings about real programs; takes minutes and wants an idle machine
	@tools/setup.sh extra
	$(call TEST_ENV,$(BUILD)) tools/pytest_twice.sh $(PYTEST) -m timed --timeout 300

# Some programs only: make zoo ZOO="--only shapes --only ragged".
ZOO ?=

claims: build ## the gains that the guides claim, shown on examples; minutes
	@tools/setup.sh extra
	@$(call TEST_ENV,$(BUILD)) $(PYTHON_BIN) tools/claims.py --build $(BUILD)

zoo: build ## is the verdict right? runs some ninety trainings, takes many minutes
	@tools/setup.sh extra
	$(PYTHON_BIN) tests/zoo/run.py --build $(BUILD) $(ZOO)

sanitize: sanitize-address sanitize-python sanitize-thread ## all tests under ASan + UBSan and under TSan

SANITIZE_OPTIONS = -Dwerror=true -Dtests=enabled -Dbench=disabled -Dbuildtype=debugoptimized

.PHONY: build-asan
build-asan:
	@tools/setup.sh sanitize
	@$(call configure,build-asan,$(SANITIZE_OPTIONS) $(FOR_PYTHONS) \
		-Db_sanitize=address$(comma)undefined)
	@$(VENV)/bin/ninja -C build-asan --quiet

sanitize-address: build-asan
	$(MESON) test -C build-asan --no-rebuild --print-errorlogs --timeout-multiplier 5
	$(if $(wildcard tests/cli/test_*.py),$(call TEST_ENV,build-asan) $(PYTEST) tests/cli)

# The interpreter itself is not built with ASan, which therefore has to be loaded before it; what
# the interpreter leaves behind at its end is not ours to report.
sanitize-python: build-asan ## the tests of the extension under ASan + UBSan, with every Python
	@$(call TEST_ENV,build-asan) PYTHONMALLOC=malloc \
		ASAN_OPTIONS=$(ASAN_OPTIONS):detect_leaks=0 tools/test_pythons.sh --asan --main

valgrind-python: build ## the tests of the extension under valgrind; takes many minutes
	@tools/setup.sh valgrind
	@$(call TEST_ENV,$(BUILD)) PYTHONMALLOC=malloc tools/test_pythons.sh --valgrind --main

sanitize-thread:
	@tools/setup.sh sanitize
	@$(call configure,build-tsan,$(SANITIZE_OPTIONS) -Dpython=disabled -Db_sanitize=thread)
	@$(VENV)/bin/ninja -C build-tsan --quiet
	$(MESON) test -C build-tsan --no-rebuild --print-errorlogs --timeout-multiplier 10

cross: ## the C core for 64-bit ARM, its tests under qemu-user; takes minutes
	@tools/setup.sh test cross
	@tools/cross.sh $(MESON)

fuzz: ## explore each fuzz target for FUZZ_SECONDS
	@tools/setup.sh test fuzz
	@CC=clang $(call configure,build-fuzz,-Dfuzz=true -Dtests=disabled -Dpython=disabled \
		-Dbench=disabled -Db_lundef=false -Db_sanitize=address$(comma)undefined)
	@$(VENV)/bin/ninja -C build-fuzz --quiet
	@set -e; for target in $(FUZZ_TARGETS); do \
		name=$${target#fuzz_}; \
		mkdir -p build-fuzz/found/$$name build-fuzz/crashes tests/fuzz/corpus/$$name; \
		echo "$$target: $(FUZZ_SECONDS) s"; \
		build-fuzz/tests/fuzz/$$target -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
			-rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 \
			-artifact_prefix=build-fuzz/crashes/$$name- \
			build-fuzz/found/$$name tests/fuzz/corpus/$$name; \
	done

docs: ## check links and man pages, render the man pages to build/docs
	@tools/setup.sh test
	@$(PYTHON_BIN) tools/check_docs.py --render $(BUILD)/docs

clean: ## remove what was built; the virtual environment stays
	rm -rf build build-*

comma := ,
