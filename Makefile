# Two commands for a fresh clone: `make demo` and `make test`. Both set everything up and are fast the second time.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNTIME_STAMP := $(VENV)/.installed-runtime
TORCH_STAMP := $(VENV)/.installed-torch

.PHONY: demo test check lint types arrows torch deep bench clean

demo: $(RUNTIME_STAMP)
	$(BIN)/tenure replay --sample --check
	$(BIN)/tenure replay --sample --check --rows hidden:64 --rows mm:16 --rows codes:8:int32:deferred \
		--visibility scheduled --builder-lag 3 --abort-rate 0.05 --preempt-rate 0.05

test: $(STAMP)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -n auto --dist worksteal
	@$(BIN)/coverage combine -q
	$(BIN)/coverage report

# What CI runs before the tests.
check: lint types arrows

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP) $(TORCH_STAMP)
	$(BIN)/mypy
	$(BIN)/pyright

arrows: $(STAMP)
	$(BIN)/lint-imports

# torch is optional: the tests that need it are skipped where it is missing, and types cannot be checked without it.
torch: $(TORCH_STAMP)

# About a million steps of every stateful test; for nights.
deep: $(STAMP)
	HYPOTHESIS_PROFILE=deep TENURE_STRESS_STEPS=200000 $(BIN)/python -m pytest -q tests/stateful

bench: $(STAMP)
	$(BIN)/python benchmarks/blocks.py
	$(BIN)/python benchmarks/rows_core.py
	$(BIN)/python benchmarks/rows.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(RUNTIME_STAMP): pyproject.toml constraints/ci.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints/ci.txt -e .
	@touch $@

$(STAMP): pyproject.toml constraints/ci.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints/ci.txt -e '.[dev]'
	@touch $@ $(RUNTIME_STAMP)

$(TORCH_STAMP): constraints/ci.txt | $(STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints/ci.txt torch
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
