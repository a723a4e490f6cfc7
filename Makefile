# Every target sets itself up: it creates .venv where it is missing and installs what it needs, once.
PYTHON ?= python3
PIP_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIN := constraints.txt
# The two variables pin the build backend as well: pip before 25.3 reads the first, later ones the second.
# A source distribution is built apart, with all that its tools need: in our own environment seqeval finds no setuptools_scm.
PIP := PIP_CONSTRAINT="$(CURDIR)/$(PIN)" PIP_BUILD_CONSTRAINT="$(CURDIR)/$(PIN)" \
  $(BIN)/python -m pip --disable-pip-version-check install --use-pep517 --quiet -c $(PIN) $(PIP_ARGS)
CORE := $(VENV)/core.stamp
TEST := $(VENV)/test.stamp

# The named data sets, where a checkout has them beside it.
ifneq ($(wildcard ../shared/data/.),)
ORRERY_DATA ?= $(abspath ../shared/data)
endif
export ORRERY_DATA

# Two workers with one torch thread each; pytest leaves with 5 where a tier holds no test yet.
WORKERS ?= 2
EXAMPLES ?= 20
PYTEST = OMP_NUM_THREADS=1 ORRERY_TEST_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q
tier = $(PYTEST) $(1) || test $$? -eq 5
tier_in = $(if $(wildcard $(1)),$(call tier,$(2) $(1)))
# Types are checked at run time in the tests of single parts and of the program. Compiled graphs hold no such checks,
# and comparisons of numbers, those of ways to decode among them, would take twice as long with them.
UNTYPED := export JAXTYPING_DISABLE=1;
NUMBERS := $(wildcard tests/parity tests/gradients tests/learning tests/unit/generation)
PROPERTIES := tests/properties
TYPED = tests --ignore=tests/compile $(NUMBERS:%=--ignore=%)
# One process: the pages run examples, and a forked worker that dies says nothing but "EOFError".
pages = OMP_NUM_THREADS=1 PYTHONFAULTHANDLER=1 $(BIN)/sphinx-build $(1) -W --keep-going docs docs/_build/html
FAST = $(TYPED) $(if $(PROPERTIES),,--ignore=tests/properties)

.PHONY: help demo test quick test-slow test-long test-for mutants checks docs clean
.DEFAULT_GOAL := help

help:
	@echo "make demo        train a small model on Python's own documentation, in three minutes"
	@echo "make quick       unit, architecture and property tests, in ten minutes"
	@echo "make test        every test that is not slow"
	@echo "make test-slow   the slow tier, and the property tests with 60 examples each"
	@echo "make test-long   what takes too long for every change, and the property tests with 200 examples: an hour"
	@echo "make test-for PATH ...  the tests worth running after a change of some files, in under a minute"
	@echo "make mutants     break the program on purpose and list what no test notices: three hours on two cores"
	@echo "make checks      format, lint, types, import contracts, documentation"
	@echo "make docs        the documentation, into docs/_build/html"
	@echo "make clean       remove .venv and everything built"
	@echo "PYTHON=python3.12 chooses the interpreter; PIP_ARGS='...' is passed to every pip install"

demo: $(CORE)
	$(BIN)/orrery demo --overwrite

quick: $(TEST)
	$(call tier,-n $(WORKERS) -m "not slow and not long and not alone" $(wildcard tests/unit tests/architecture tests/properties))

test: $(TEST)
	$(call tier,-n $(WORKERS) -m "not slow and not long and not alone" $(FAST))
	$(UNTYPED) $(call tier,-n $(WORKERS) -m "not slow and not long and not alone" $(NUMBERS))
	$(call tier,-m "not slow and not long and alone" tests --ignore=tests/compile)
	$(UNTYPED) $(call tier_in,tests/compile,-m "not slow")

test-slow: EXAMPLES := 60
test-slow: $(TEST)
	$(call tier,-n $(WORKERS) -m "slow and not long and not alone" $(TYPED))
	$(UNTYPED) $(call tier,-n $(WORKERS) -m "slow and not long and not alone" $(NUMBERS))
	$(call tier,-m "slow and not long and alone" tests --ignore=tests/compile)
	$(UNTYPED) $(call tier_in,tests/compile,-m slow)
	$(call tier_in,tests/properties,-n $(WORKERS) -m "not slow and not long and not alone")

test-long: EXAMPLES := 200
test-long: $(TEST)
	$(call tier,-n $(WORKERS) -m "long and not alone" $(TYPED))
	$(UNTYPED) $(call tier,-n $(WORKERS) -m "long and not alone" $(NUMBERS))
	$(call tier,-m "long and alone" tests --ignore=tests/compile)
	$(call tier_in,tests/properties,-n $(WORKERS) -m "not slow and not alone")

# Stopped at any moment, it goes on where it was.
mutants: $(TEST)
	OMP_NUM_THREADS=1 $(BIN)/python tests/mutation/run.py --workers $(WORKERS)

# The words after the target are paths, and nothing is to be made of them.
ifeq (test-for,$(firstword $(MAKECMDGOALS)))
PATHS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
ifneq (,$(PATHS))
.PHONY: $(PATHS)
$(PATHS): ;@:
endif
endif
test-for: $(TEST)
	@$(BIN)/python tests/map/related.py $(PATHS)

checks: $(TEST)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(call pages,-q)
	$(BIN)/python tests/architecture/rules.py

docs: $(TEST)
	$(call pages)

clean:
	rm -rf $(VENV) dist build docs/_build .mutants .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# torch has its own call: a build with a local label satisfies the plain pin, and nothing later can replace it.
$(CORE): pyproject.toml $(PIN) | $(BIN)/python
	$(PIP) torch
	$(PIP) -e .
	@touch $@

$(TEST): $(CORE)
	$(PIP) -e ".[fast,eval,oracle,serve,dev]"
# Alone: what it names beside what the oracle extra has (wandb, protobuf, a stream generator) no test of ours needs, and
# an oracle moves none of our pins.
	$(PIP) --no-deps transformer_lens
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "error: '$(PYTHON)' is missing or older than Python 3.11: install Python 3.11 or newer," \
	    "or name one: make PYTHON=python3.12" >&2; exit 5; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "error: this Python cannot make virtual environments: install its venv package" \
	    "(Debian and Ubuntu: apt-get install python3-venv)" >&2; exit 5; }
	$(PYTHON) -m venv $(VENV)
