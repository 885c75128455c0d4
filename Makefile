# `make demo` and `make test` work on a fresh clone; both build .venv first if it is missing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The constraints keep pip from replacing torch by another build.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Stamps: what is installed is as new as the files that say what to install.
RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development

.DEFAULT_GOAL := help
.PHONY: help setup demo test pytest lint type format bench clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e .
	@touch $@

$(DEVELOPMENT): $(RUNTIME)
	$(INSTALL) -e '.[bench,dev,import,train]'
	@touch $@

setup: $(DEVELOPMENT)  ## install everything for development and benchmarks into .venv

demo: $(RUNTIME)  ## denoise a photo and write demo.png; installs only what that needs
	$(BIN)/python examples/demo.py

test: lint type pytest  ## lint, type check, and run all tests

pytest: setup  ## the tests and the examples in docstrings
	$(BIN)/python -m pytest

lint: setup  ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: setup  ## mypy, strict, on the whole package
	$(BIN)/mypy

format: setup  ## let ruff format the code and mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## measure nlnet and its peers on this machine
	$(BIN)/python -m benchmarks

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build dist demo.png

.PHONY: clean-cache
clean-cache:  ## remove numba's compiled kernels, after a change in kernels/simd
	find src -name '*.nb[ci]' -delete
