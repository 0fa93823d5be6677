# Everything a fresh machine needs is Python 3.11+, make and git. `make` alone explains the targets.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
PYTEST := $(BIN)/python -m pytest
JOBS ?= 2
PYTEST_ARGS ?=

# The quick tests first, so that a mistake shows in seconds.
TESTS := tests/unit $(filter-out tests/unit tests/browser tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/)))

REVERIE_DATA ?= ./data

.DEFAULT_GOAL := help
.PHONY: help run test check format docs bench soak lock clean

help: ## Show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

run: $(VENV)/.run ## Start the host on embedded SQLite (data in ./data, or REVERIE_DATA=...)
	REVERIE_DATA='$(REVERIE_DATA)' $(BIN)/reverie serve

test: $(VENV)/.dev ## Run the tests (PYTEST_ARGS=... to choose)
	$(PYTEST) -n $(JOBS) --dist worksteal $(PYTEST_ARGS) $(TESTS)

check: $(VENV)/.dev ## Lint, format, types, import direction, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/generate_aio.py --check
	$(BIN)/python tools/generate_docs.py --check
	$(PYTEST) tests/unit/test_imports.py

format: $(VENV)/.dev ## Format the code and sort its imports
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(VENV)/.dev ## Write the generated pages and the async facade anew
	$(BIN)/python tools/generate_aio.py
	$(BIN)/python tools/generate_docs.py

bench: $(VENV)/.dev ## Measure, beside other memories, each in an environment of its own
	$(BIN)/python -m bench

soak: $(VENV)/.dev ## The long crash, race and fuzz runs, in full
	REVERIE_SOAK=1 $(PYTEST) -n $(JOBS) --timeout 14400 $(PYTEST_ARGS) \
		$(wildcard tests/crash tests/soak tests/property tests/fuzz tests/race tests/isolation tests/simulate)

lock: $(VENV)/.dev ## Pin the dependencies anew, with hashes
	$(BIN)/uv pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		--all-extras --group build --group dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		--group build pyproject.toml -c requirements/dev.txt -o requirements/run.txt

clean: ## Remove the environment and every cache (data stays)
	rm -rf $(VENV) .venvs .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: an environment is made again only when what it is made from has changed.

$(VENV)/bin/python:
	@test -n '$(PYTHON)' || { echo 'Reverie needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python3.11'; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	@echo 'Installing what Reverie needs ...'
	$(PIP) install --require-hashes -r requirements/run.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(VENV)/bin/python
	@echo 'Installing what the tests need ...'
	$(PIP) install --require-hashes -r requirements/dev.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.run
