# make demo: see it work.  make test: check everything.  Each builds .venv first if it is missing or out of date:
# .venv/ready has what users need (".[all]"), .venv/dev also what tests and docs need (".[dev]").
PYTHON ?= python3
BIN := .venv/bin
AT_ONCE = $(shell $(PYTHON) -c 'import os; print(len(os.sched_getaffinity(0)) + 1)' 2> /dev/null || echo auto)

.PHONY: demo explore docs pages test test-long format setup pins clean wheel

demo: .venv/ready
	$(BIN)/lddr demo --out demo

explore: .venv/ready  # trains nothing when the demo's runs are there
	test -d demo/runs || $(BIN)/lddr demo --out demo
	$(BIN)/lddr explore demo/runs

pages: .venv/dev  # write docs/commands.md, docs/api.md and src/lddr/parts.json, which are made from the code
	$(BIN)/python -m tools.website pages

docs: pages  # a site that needs no network: open site/index.html
	$(BIN)/python -m tools.website stage
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python -m tools.website finish

wheel: .venv/ready
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

test: .venv/dev .venv/browser
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n $(AT_ONCE) --dist loadgroup  # one more than cores: some tests wait for Ray or a browser

test-long: .venv/dev .venv/browser  # what is left out above: the same with more models, runs and processes
	$(BIN)/pytest -n $(AT_ONCE) --dist loadgroup -m long

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

setup: .venv/dev

.venv/ready: pyproject.toml constraints.txt hashes.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lddr needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --requirement hashes.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all]"  # torch, and what other systems need
	@touch $@

.venv/dev: .venv/ready hashes-dev.txt
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --requirement hashes-dev.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

.venv/browser: .venv/dev  # pages are tested in Chromium: Debian's, else Playwright's own
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null \
	  || { test "$$(id -u)" = 0 && { apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; }; } > /dev/null; } \
	  || $(BIN)/playwright install chromium \
	  || { echo "the tests need a browser: install Debian's chromium, or run $(BIN)/playwright install chromium"; exit 1; }
	@touch $@

pins:  # write constraints.txt, hashes.txt and hashes-dev.txt from the newest versions that pyproject.toml admits (torch stays where it is)
	rm -rf .venv
	$(PYTHON) -m venv .venv
	printf 'torch==2.13.0\nspriteworld==1.0.2\n' > constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps spriteworld  # its enum34 breaks Python 3
	$(BIN)/python -m pip install --quiet --no-deps trackio brotli gradio-client orjson python-multipart  # not its other server
	{ echo "# Every version the tests ran with: pip install --constraint constraints.txt lddr"; \
	  $(BIN)/python -m pip freeze --exclude-editable | sed 's/+cpu$$//' | sort -f; } > .venv/pins
	mv .venv/pins constraints.txt
	$(BIN)/python tools/hashes.py
	@touch .venv/ready .venv/dev

clean:
	rm -rf .venv build demo dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
