# make demo: see it work.  make test: check everything.  Both build .venv first when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test format setup clean

demo: .venv/ready
	$(BIN)/lddr demo --out demo

test: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest

format: .venv/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lddr needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps spriteworld  # its enum34 breaks Python 3
	@touch $@

clean:
	rm -rf .venv demo .mypy_cache .pytest_cache .ruff_cache .hypothesis
