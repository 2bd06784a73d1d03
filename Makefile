# make demo    the main job end to end, in a folder of its own
# make test    lint, types and tests
# make attack  the known cheats, refused, and their honest twins, passed
# make fuzz    10,000 broken inputs through every door
# make bench   the figures in docs/benchmarks, measured here

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

.PHONY: demo test lint types pytest attack fuzz bench clean

demo: $(INSTALLED)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh demo

test: lint types pytest

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

pytest: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist loadfile

attack: $(INSTALLED)
	$(BIN)/python -m tests.attacks

fuzz: $(INSTALLED)
	KERNELGEN_FUZZ_CASES=$${KERNELGEN_FUZZ_CASES:-10000} $(BIN)/python -m tests.fuzz

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

$(INSTALLED): pyproject.toml requirements-dev.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else f"kernelgen needs Python 3.11 to 3.13, and {sys.executable} is {v[0]}.{v[1]}; name another: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) demo .pytest_cache .ruff_cache .mypy_cache
