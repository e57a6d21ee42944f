# Everything runs from .venv; each target builds it first if it is missing or out of date.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help venv lint test soak bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(STAMP) ## create or update .venv (quick when nothing changed)

# The constraints pin torch, so that no CUDA build is pulled.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

lint: $(STAMP) ## ruff, mypy, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint ## lint, then every test
	$(BIN)/python -m pytest

soak: $(STAMP) ## the property tests on 100,000 rows, into benchmarks/results/soak.txt
	mkdir -p benchmarks/results
	GENRECOURSE_SOAK_ROWS=100000 $(BIN)/python -m pytest tests/test_properties.py -q \
		| tee benchmarks/results/soak.txt

bench: $(STAMP) ## every benchmarks/bench_*.py, in turn
	@shopt -s failglob; for script in benchmarks/bench_*.py; do $(BIN)/python "$$script"; done

clean: ## remove caches and build products; leave .venv
	rm -rf build dist demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks paper -depth '(' -name __pycache__ -o -name '*.egg-info' ')' \
		-exec rm -rf {} + 2>/dev/null || true
