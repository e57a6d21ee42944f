# Everything runs from .venv; each target builds it first if it is missing or out of date.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNTIME := $(VENV)/.runtime
SERVING := $(VENV)/.serving

.PHONY: help demo serve venv lint test docs soak fuzz mutants bench bench-peers paper-quick paper dist lowest clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(RUNTIME) ## train on German credit, show plans, write demo/report.html
	$(BIN)/genrecourse demo --folder demo

serve: $(SERVING) ## the page and the API of a model of German credit, in a browser
	test -f demo/model/model.json || { mkdir -p demo; \
		$(BIN)/genrecourse datasets german -o demo/german.csv; \
		$(BIN)/genrecourse fit demo/german.csv --policy policies/german.toml -o demo/model; }
	$(BIN)/genrecourse serve demo/model --name german --open

venv: $(STAMP) ## create or update .venv (quick when nothing changed)

# The constraints pin torch, so that no CUDA build is pulled.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# What a user needs, and no more: the demo should not wait for linters.
$(RUNTIME): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	touch $@

$(SERVING): $(RUNTIME)
	$(INSTALL) -e '.[serve]'
	touch $@

$(STAMP): $(RUNTIME)
	$(INSTALL) -e '.[dev]'
	touch $@

lint: $(STAMP) ## ruff, mypy, who may import whom, and the limits of scripts/house.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/house.py --check

# One process a core, each with one thread: quicker than one process with many.
test: lint ## lint, then every test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

docs: $(STAMP) ## the pages of docs/ as a site, into site/
	$(BIN)/python scripts/cli_page.py > docs/cli.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

SOAK = tests/methods/test_properties.py tests/planning/test_plan_properties.py \
	tests/advice/test_plan_files.py
soak: $(STAMP) ## property tests on 100,000 rows and plans, 10,000 plans to files and back, bad input
	mkdir -p benchmarks/results
	GENRECOURSE_SOAK_ROWS=100000 OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SOAK) -q \
		| tee benchmarks/results/soak.txt
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.hold.soak

fuzz: $(STAMP) ## 20,000 requests that the API's description allows or forbids, into benchmarks/results
	$(BIN)/python -m benchmarks.fuzz_api --processes 2

mutants: $(STAMP) ## break the library on purpose, into benchmarks/results/mutants.txt
	$(BIN)/python -m scripts.mutants

# All but those that need a second environment or an earlier version.
BENCHES = $(filter-out bench_peers bench_start bench_effort,$(basename $(notdir $(wildcard benchmarks/bench_*.py))))
bench: $(STAMP) ## every benchmarks/bench_*.py in turn that needs no second environment
	@for name in $(BENCHES); do $(BIN)/python -m "benchmarks.$$name"; done

bench-peers: $(STAMP) ## dice-ml and NICE on the same h, people and metrics, into benchmarks/results
	$(BIN)/python -m benchmarks.peers.environments
	$(BIN)/python -m benchmarks.bench_peers

paper-quick: $(STAMP) ## the paper's tables and figures, one seed and 200 people, into paper/results/quick
	$(BIN)/python -m paper all --quick

paper: $(STAMP) ## the same with five seeds and all people: hours; goes on where it was stopped
	$(BIN)/python -m paper all

dist: $(STAMP) ## the wheel and the sdist, into dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

lowest: ## the quick tests with the lowest versions that pyproject.toml allows, in .venv-lowest
	PYTHON=$(PYTHON) bash scripts/lowest.sh

clean: ## remove caches and build products; leave .venv
	rm -rf build dist demo site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks paper -depth '(' -name __pycache__ -o -name '*.egg-info' ')' \
		-exec rm -rf {} + 2>/dev/null || true
