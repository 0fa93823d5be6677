# Everything a fresh machine needs is Python 3.11+, make and git. `make` alone explains the targets.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
# Unbuffered, so that its progress is seen while it works.
PIP := $(BIN)/python -u -m pip --disable-pip-version-check
# One short line per package as it arrives; a failure of pip is the exit code of the whole.
PROGRESS := awk '/^Collecting/ { print "  " $$2; fflush() } /^Installing/ { print "  installing"; fflush() } /^pip-failed$$/ { bad = 1 } END { exit bad }'
PYTEST := $(BIN)/python -m pytest
JOBS ?= 4
# Compiled modules are kept, also where the surroundings say otherwise: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=
PYTEST_ARGS ?=

# The quick tests first, so that a mistake shows in seconds.
CHROMIUM := $(firstword $(wildcard /usr/bin/chromium /usr/bin/chromium-browser /usr/bin/google-chrome))
TESTS := tests/unit $(if $(CHROMIUM),tests/browser) $(filter-out tests/unit tests/browser tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/)))

REVERIE_DATA ?= ./data
# The checks of `make check`, which run side by side.
CHECKS := types repeated generated lint imports

.DEFAULT_GOAL := help
.PHONY: help run test check format docs screenshots bench soak compat lock resolve package release site clean $(CHECKS:%=check-%)

help: ## Show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 20

run: $(VENV)/.run ## Start the host on embedded SQLite (data in ./data, or REVERIE_DATA=...)
	REVERIE_DATA='$(REVERIE_DATA)' REVERIE_PRINT_KEY=true $(BIN)/reverie serve

test: $(VENV)/.dev ## Run the tests (PYTEST_ARGS=... to choose)
	@$(if $(CHROMIUM),true,echo 'No Chromium is installed: the tests of the console in a browser are left out.')
	$(PYTEST) -n $(JOBS) --dist worksteal $(PYTEST_ARGS) $(TESTS)

check: $(VENV)/.dev ## Lint, format, types, repeated code, import direction, generated files
	@$(MAKE) --no-print-directory -j $(JOBS) $(CHECKS:%=check-%)

check-lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check-types:
	$(BIN)/mypy

check-repeated:
	$(BIN)/pylint --disable=all --enable=duplicate-code --min-similarity-lines=10 --score=n src/reverie

check-generated:
	$(BIN)/python tools/generate_aio.py --check
	$(BIN)/python tools/generate_typescript.py --check
	$(BIN)/python tools/compile_rules.py --check
	$(BIN)/python tools/generate_docs.py --check

check-imports:
	$(PYTEST) tests/unit/test_imports.py tests/unit/test_shape.py

format: $(VENV)/.dev ## Format the code and sort its imports
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(VENV)/.dev ## Write the generated pages, the examples of the API and the async facade
	$(BIN)/python tools/generate_aio.py
	$(BIN)/python tools/record_examples.py
	$(BIN)/python tools/generate_typescript.py
	$(BIN)/python tools/compile_rules.py
	$(BIN)/python tools/generate_docs.py

screenshots: $(VENV)/.dev ## Take the pictures of the console in docs/images (needs Chromium)
	$(BIN)/python tools/screenshots.py --docs

bench: $(VENV)/.dev ## Measure beside other memories and write docs/measured.md (QUICK=1: a first look)
	$(BIN)/python -m bench $(if $(QUICK),--quick)

soak: $(VENV)/.dev ## The long crash, race and fuzz runs, in full
	REVERIE_SOAK=1 $(PYTEST) -n $(JOBS) --timeout 14400 $(PYTEST_ARGS) \
		$(wildcard tests/crash tests/soak tests/property tests/fuzz tests/race tests/isolation tests/simulate)

compat: $(VENV)/.dev ## Run other frameworks' tests against the adapters (SOURCES=DIR with their releases and checkouts)
	$(BIN)/python -m tools.compat '$(or $(SOURCES),/nonexistent)' --write

lock: $(VENV)/.dev ## Pin the dependencies again, with hashes
	$(BIN)/uv pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		--extra all --group build --group dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		--extra mcp --group build pyproject.toml -c requirements/dev.txt -o requirements/run.txt
	$(BIN)/uv pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		pyproject.toml -c requirements/dev.txt -o requirements/core.txt
	$(BIN)/uv pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		--group site -o requirements/site.txt
	$(BIN)/uv pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		--group pip -o requirements/pip.txt

site: $(VENV)/.dev ## Build the documentation as a static site with search, into site/
	$(BIN)/uv venv -q --allow-existing .venvs/site
	$(BIN)/uv pip install -q --python .venvs/site/bin/python --require-hashes -r requirements/site.txt
	NO_MKDOCS_2_WARNING=1 .venvs/site/bin/mkdocs build -q
	@echo "site/index.html"

resolve: $(VENV)/.dev ## Resolve every extra with the newest release of its framework
	$(BIN)/python tools/resolve_extras.py

package: $(VENV)/.dev ## Build sdist and wheel, check their metadata, and run the wheel in an empty environment
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/try_wheel.py dist/*.whl

release: package ## Build a release in dist/: wheel and sdist, tried, with checksums and a bill of materials
	$(BIN)/python tools/release.py dist

clean: ## Remove the environment and every cache (data stays)
	rm -rf $(VENV) .venvs .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: an environment is made again only when what it is made from has changed.

$(VENV)/bin/python:
	@test -n '$(PYTHON)' || { echo 'Reverie needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python3.11'; exit 1; }
	@echo 'Making an environment in $(VENV) ...'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --require-hashes -r requirements/pip.txt  # older ones forget a pin where a package is asked for with extras

$(VENV)/.run: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	@echo 'Installing what Reverie needs (once; some minutes on a slow machine) ...'
	@{ $(PIP) install --progress-bar off --require-hashes -r requirements/run.txt || echo pip-failed; } | $(PROGRESS)
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(VENV)/bin/python
	@echo 'Installing what the tests need ...'
	@{ $(PIP) install --progress-bar off --require-hashes -r requirements/dev.txt || echo pip-failed; } | $(PROGRESS)
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.run
