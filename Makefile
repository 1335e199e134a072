# Two commands do everything on a fresh machine: `make run` and `make test`.
# They need Python 3.11+, make and a package index; no services, no keys, no git.

VENV ?= .venv
PORT ?= 8000
ARGS ?=
SOAK ?= 600
WORKERS ?= 2

# The first Python that is new enough; `make PYTHON=/path/to/python ...` overrides.
PYTHON ?= $(shell for candidate in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$candidate && break; done)

PY := $(VENV)/bin/python
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
SOURCES := mcp_client_app tests example_project benchmarks scripts manage.py

# What a full run measures; `make test` does so when CI is set, `make coverage` always.
COVERAGE := --cov --cov-report=term:skip-covered --cov-fail-under=90

.DEFAULT_GOAL := help
.PHONY: help run demo test coverage lint types imports docs package published conformance fuzz soak bench format authorization clean nightly

help: ## Print this list.
	@echo "Targets:"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-16s %s\n", $$1, $$2}'
	@echo "Options: make test ARGS='-k name' - make run PORT=8001 - make PYTHON=python3.12 ..."

run: $(INSTALLED) ## Set up, connect the example servers, show them, then serve on 127.0.0.1:8000.
	@$(PY) -m example_project.demo --serve --port $(PORT)

demo: $(INSTALLED) ## The same without serving; fails unless everything really worked.
	@$(PY) -m example_project.demo

test: $(INSTALLED_DEV) ## Run the tests (ARGS= goes to pytest).
	@$(PY) -m pytest $(if $(CI),$(COVERAGE)) $(ARGS)

coverage: $(INSTALLED_DEV) ## Run the tests and measure branch coverage of the package.
	@$(PY) -m pytest $(COVERAGE) --cov-report=html $(ARGS)

lint: $(INSTALLED_DEV) ## Check style and format.
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)

types: $(INSTALLED_DEV) ## Check types.
	@$(PY) -m mypy

imports: $(INSTALLED_DEV) ## Check the import contracts (who may import whom).
	@$(BIN)/lint-imports

docs: $(INSTALLED_DEV) ## Build the documentation into site/.
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

package: $(INSTALLED_DEV) ## Build the distributions and prove the wheel alone in a fresh environment.
	@$(PY) scripts/check_wheel.py

published: $(INSTALLED_DEV) ## Install the published servers (npm, PyPI) that some tests drive.
	@$(PY) scripts/install_published.py

conformance: $(INSTALLED_DEV) ## Run the conformance suite of MCP against this client.
	@$(PY) scripts/conformance.py $(ARGS)

fuzz: $(INSTALLED_DEV) ## Send requests made up from the OpenAPI document to the REST API.
	@$(PY) -m pytest -m slow tests/api/test_schemathesis.py

soak: $(INSTALLED_DEV) ## Fifty servers, sixty-six callers, and somebody who breaks things (SOAK= seconds).
	@$(PY) -m tests.soak --seconds $(SOAK) $(ARGS)

bench: $(INSTALLED_DEV) ## Measure the client against the SDK and its peers (ARGS='calls --quick').
	@$(PY) -m benchmarks $(ARGS)

format: $(INSTALLED_DEV) ## Format the code and mend what can be mended.
	@$(BIN)/ruff check --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

authorization: $(INSTALLED_DEV) ## Write the table of who may do what anew; read the difference.
	@WRITE_AUTHORIZATION_MATRIX=1 $(PY) -m pytest -q tests/authorization

nightly: $(INSTALLED_DEV) ## Run all tests in several orders and at once, the soak, the conformance suite, a benchmark.
	@for seed in 1 2 3; do $(PY) -m pytest -m "" -p no:cacheprovider --randomly-seed=$$seed $(ARGS) || exit 1; done
	@$(PY) -m pytest -m "" -p no:cacheprovider -n $(WORKERS) --dist loadscope $(ARGS)
	@$(MAKE) soak conformance ARGS=
	@$(PY) -m benchmarks --quick

clean: ## Remove what was built and cached; the environment and var/ stay.
	rm -rf build dist site htmlcov .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# A change of pyproject.toml installs anew; a development environment can run the demo as well.
$(INSTALLED): pyproject.toml
	@$(check_python)
	@$(PYTHON) scripts/bootstrap.py $(VENV) '.[agents]' $@

$(INSTALLED_DEV): pyproject.toml
	@$(check_python)
	@$(PYTHON) scripts/bootstrap.py $(VENV) '.[dev]' $@ $(INSTALLED)

define check_python
test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found. Install one, or name it: make PYTHON=/path/to/python ..." >&2; exit 1; }
endef
