# Two commands for a fresh clone: `make demo` and `make test`. Both set everything up and are fast the second time.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNTIME_STAMP := $(VENV)/.installed-runtime
TORCH_STAMP := $(VENV)/.installed-torch
MUTATE_STAMP := $(VENV)/.installed-mutate
WORKERS ?= 2
REPORT ?= build/report
PYTEST := pytest -q -n auto --dist worksteal -m "not slow"
CORE_TESTS := $(addprefix tests/,core blocks rows joined house/test_docs.py)
# Modules or functions that `make mutmut` keeps to, as patterns: ONLY='core.rows.claims*'
ONLY ?= core.*
MUTANTS = $(foreach pattern,$(ONLY),'tenure.$(pattern)')

.PHONY: demo test check lint types mypy pyright arrows torch models traces mutants walks contracts checked deep mutmut mutmut-survivors bench clean

demo: $(RUNTIME_STAMP)
	$(BIN)/tenure replay --sample --check
	$(BIN)/tenure replay --sample --check --rows hidden:64 --rows mm:16 --rows codes:8:int32:deferred \
		--visibility scheduled --builder-lag 3 --abort-rate 0.05 --preempt-rate 0.05
	$(BIN)/tenure check --scope smoke --workers $(WORKERS)

# The core's own tests must reach all of it; measuring that takes as long again, so the others are not measured.
test: $(STAMP)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m $(PYTEST) $(CORE_TESTS)
	@$(BIN)/coverage combine -q
	$(BIN)/coverage report
	$(BIN)/python -m $(PYTEST) tests $(addprefix --ignore=,$(CORE_TESTS))

# What CI runs before the tests.
check: lint types arrows

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: mypy pyright

mypy: $(STAMP) $(TORCH_STAMP)
	$(BIN)/mypy

pyright: $(STAMP) $(TORCH_STAMP)
	$(BIN)/pyright

arrows: $(STAMP)
	$(BIN)/lint-imports

# torch is optional: the tests that need it are skipped where it is missing, and types cannot be checked without it.
torch: $(TORCH_STAMP)

# Every interleaving in the scopes of CI; planted faults; long walks; contracts. What `docs/verification.md` speaks of.
checked: models mutants walks contracts

models: $(STAMP)
	$(BIN)/tenure check --scope ci --workers $(WORKERS) --report $(REPORT) --junit $(REPORT)/models.xml

# What the conformance kit goes through, in the wheel: written anew when rules, schema or machine change. Some ten minutes.
traces: $(STAMP)
	$(BIN)/python -m tenure.model_checks.traces

mutants: $(STAMP)
	$(BIN)/tenure mutants --workers $(WORKERS) --report $(REPORT) --junit $(REPORT)/mutants.xml

walks: $(STAMP)
	$(BIN)/python -m tenure.model_checks.walks --profile ci --workers $(WORKERS)

contracts: $(STAMP)
	$(BIN)/python -m tenure.model_checks.contracts

# For nights: large scopes within a budget, walks of a hundred million events, about a million steps of every test.
deep: $(STAMP)
	$(BIN)/tenure check --scope deep --workers $(WORKERS) --budget seconds=14400,mib=16000 --compact \
		--checkpoints build/checkpoints --resume --report build/deep || test $$? -eq 3
	$(BIN)/python -m tenure.model_checks.walks --profile deep --workers $(WORKERS)
	$(BIN)/python -m pytest -q -m slow
	HYPOTHESIS_PROFILE=deep TENURE_STRESS_STEPS=200000 $(BIN)/python -m pytest -q tests/stateful tests/walks

# For nights: every small change of the core, against the tests that are quick. Survivors are shown; one that nobody argued
# fails. A mutant that was tried stays decided until its function or the configuration changes; ONLY tries again.
mutmut: $(MUTATE_STAMP)
	HYPOTHESIS_PROFILE=mutation $(BIN)/mutmut run --max-children $(WORKERS) $(if $(filter-out core.*,$(ONLY)),$(MUTANTS))
	@$(MAKE) --no-print-directory mutmut-survivors

mutmut-survivors: $(MUTATE_STAMP)
	$(BIN)/python tests/survivors.py $(MUTANTS)

bench: $(STAMP)
	$(BIN)/python benchmarks/blocks.py
	$(BIN)/python benchmarks/rows_core.py
	$(BIN)/python benchmarks/rows.py
	$(BIN)/python benchmarks/recording.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(RUNTIME_STAMP): pyproject.toml constraints/ci.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints/ci.txt -e '.[check]'
	@touch $@

$(STAMP): pyproject.toml constraints/ci.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints/ci.txt -e '.[dev]'
	@touch $@ $(RUNTIME_STAMP)

$(TORCH_STAMP): constraints/ci.txt | $(STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints/ci.txt torch
	@touch $@

$(MUTATE_STAMP): pyproject.toml constraints/ci.txt | $(STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints/ci.txt -e '.[dev,mutate]'
	@touch $@

clean:
	rm -rf $(VENV) build mutants *.egg-info .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
