# Two commands for a fresh clone: `make demo` and `make test`. Both set everything up and are fast the second time.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNTIME_STAMP := $(VENV)/.installed-runtime

.PHONY: demo test check lint types arrows deep bench clean

demo: $(RUNTIME_STAMP)
	$(BIN)/tenure replay --sample --check

test: $(STAMP)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q
	@$(BIN)/coverage combine -q
	$(BIN)/coverage report

# What CI runs before the tests.
check: lint types arrows

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP)
	$(BIN)/mypy
	$(BIN)/pyright

arrows: $(STAMP)
	$(BIN)/lint-imports

# About a million steps of every stateful test; for nights.
deep: $(STAMP)
	HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest -q tests/stateful

bench: $(STAMP)
	$(BIN)/python benchmarks/blocks.py
	$(BIN)/python benchmarks/rows_core.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(RUNTIME_STAMP): pyproject.toml constraints/ci.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints/ci.txt -e .
	@touch $@

$(STAMP): pyproject.toml constraints/ci.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints/ci.txt -e '.[dev]'
	@touch $@ $(RUNTIME_STAMP)

clean:
	rm -rf $(VENV) build *.egg-info .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
