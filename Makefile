# Needs only make and Python 3.11 or newer. `make help` lists the targets.
# PYTHON picks the interpreter of the virtual environment:  make install PYTHON=python3.13

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.demo
DOCS_STAMP := $(VENV)/.docs
PIP := $(BIN)/python -m pip install --disable-pip-version-check --no-input --only-binary :all:
PYTEST := $(BIN)/python -m pytest
# A worker that dies ends the run, and the report names its test: a new one in its place is left without tests, and waits for ever.
WORKERS := -n 2 --dist loadfile --max-worker-restart 0

# The first of these that runs, is new enough and can make a virtual environment. A name that is on the path
# need not run (version managers leave stubs), so each one is tried rather than looked up.
CANDIDATES := python3 python3.13 python3.12 python3.14 python3.11 python
USABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in $(CANDIDATES); do if $$p -c '$(USABLE)' >/dev/null 2>&1; then echo $$p; break; fi; done)

.DEFAULT_GOAL := help
.PHONY: help install smoke test test-slow test-bounds lint demo docs notebooks bench clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

install: $(STAMP)  ## make .venv and install structpred with everything the tests and the linters need

define VIRTUAL_ENVIRONMENT
@if [ -z "$(PYTHON)" ]; then \
  echo "structpred needs Python 3.11 or newer with the venv module; none of these works here: $(CANDIDATES)." >&2; \
  echo "Install one (on Debian and Ubuntu: apt-get install python3 python3-venv), or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; \
  exit 1; \
fi
@if ! $(PYTHON) -c '$(USABLE)'; then \
  echo "$(PYTHON) cannot be used: structpred needs Python 3.11 or newer with the venv and ensurepip modules." >&2; \
  exit 1; \
fi
test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
endef

# Wheels only: nothing is compiled on the user's machine. structpred itself is pure Python and installed in place.
$(STAMP): pyproject.toml
	$(VIRTUAL_ENVIRONMENT)
	@echo "Installing structpred with all that its tests and linters need: some 65 packages, which takes a few minutes."
	$(PIP) -e '.[test,lint]'
	@touch $(STAMP) $(DEMO_STAMP)

# The demo draws a picture and needs nothing else; after `make install` that is there already.
$(DEMO_STAMP): pyproject.toml
	$(VIRTUAL_ENVIRONMENT)
	@echo "Installing structpred with Matplotlib: some 25 packages, which takes a minute or two."
	$(PIP) -e '.[plot]'
	@touch $(DEMO_STAMP)

smoke: $(STAMP)  ## a minute or two of tests: layers, core, a trainer, a model, the shell
	$(PYTEST) -m "not slow" tests/test_layers.py tests/core tests/features tests/storage tests/trainers/test_sgd.py tests/models/test_chain_labeler.py tests/cli/test_training_options.py $(ARGS)

test: $(STAMP)  ## the fast tests: at most six CPU minutes, and some four more the first time, to compile
	$(PYTEST) -m "not slow" $(WORKERS) $(ARGS)

test-bounds: $(STAMP)  ## the fast tests with every index of the kernels checked, both ends (slow to compile)
	STRUCTPRED_CHECK_BOUNDS=1 $(PYTEST) -m "not slow" $(WORKERS) $(ARGS)

test-slow: $(STAMP)  ## the slow tests
	$(PYTEST) -m slow $(WORKERS) $(ARGS)

lint: $(STAMP)  ## style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

demo: $(DEMO_STAMP)  ## train on strings of handwritten digits; a picture goes to out/
	$(BIN)/python examples/digits_demo.py

$(DOCS_STAMP): pyproject.toml
	$(VIRTUAL_ENVIRONMENT)
	@echo "Installing structpred with MkDocs and Matplotlib: some 60 packages, which takes a minute or two."
	$(PIP) -e '.[docs]'
	@touch $(DOCS_STAMP)

docs: $(DOCS_STAMP)  ## the documentation as a site, in site/; no network is needed once MkDocs is installed
	@echo "Building the site in site/: about a minute."
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --clean
	@echo "site/index.html; with search: $(BIN)/python -m http.server -d site"

notebooks: $(STAMP)  ## run the notebooks and keep their outputs, without times (layers and network_tagger need PyTorch)
	$(BIN)/python tests/examples/notebooks.py

bench: $(STAMP)  ## the comparison with other programs on CoNLL-2000 (needs the data, see docs/formats.md)
	$(PIP) --quiet -e '.[bench]'
	$(BIN)/python benchmarks/chunking.py

clean:  ## remove the virtual environment, the caches, out/ and site/
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist out site
	find structpred tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
