# Needs only make and Python 3.11 or newer. `make help` lists the targets.
# PYTHON picks the interpreter of the virtual environment:  make install PYTHON=python3.13

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest

# The first of these that runs, is new enough and can make a virtual environment. A name that is on the path
# need not run (version managers leave stubs), so each one is tried rather than looked up.
CANDIDATES := python3 python3.13 python3.12 python3.14 python3.11 python
USABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in $(CANDIDATES); do if $$p -c '$(USABLE)' >/dev/null 2>&1; then echo $$p; break; fi; done)

.DEFAULT_GOAL := help
.PHONY: help install test test-slow lint demo bench clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

install: $(STAMP)  ## make .venv and install structpred with everything the tests and the linters need

# Wheels only: nothing is compiled on the user's machine. structpred itself is pure Python and installed in place.
$(STAMP): pyproject.toml
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
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --only-binary :all: -e '.[test,lint]'
	@touch $(STAMP)

test: $(STAMP)  ## the fast tests
	$(PYTEST) -m "not slow" -n 2 --dist loadfile $(ARGS)

test-slow: $(STAMP)  ## the slow tests
	$(PYTEST) -m slow -n 2 --dist loadfile $(ARGS)

lint: $(STAMP)  ## style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

demo: $(STAMP)  ## train on strings of handwritten digits; a picture goes to out/
	$(BIN)/python examples/digits_demo.py

bench: $(STAMP)  ## the comparison with other programs on CoNLL-2000 (needs the data, see docs/formats.md)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --only-binary :all: -e '.[bench]'
	$(BIN)/python benchmarks/chunking.py

clean:  ## remove the virtual environment, the caches and out/
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist out
	find structpred tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
