# Two commands: `make chaos` (the main job, its verdict and report) and `make test` (unit tests, mutants, chaos tests).
# Both begin with `make setup`, which installs what is missing and says what it does; the second time, nothing.

VENV := .venv/bin
SEED ?=
SEED_OPTION := $(if $(SEED),--seed $(SEED))

.PHONY: chaos test mutants conditions check unit setup tools lock clean

chaos: setup
	$(VENV)/onceproof run scenarios/copy-under-fire.toml $(SEED_OPTION)

test: setup
	$(VENV)/pytest tests/unit tests/mutants tests/chaos -m "not long" $(if $(SEED),--chaos-seed=$(SEED))

unit: tools
	$(VENV)/pytest tests/unit

mutants: tools
	$(VENV)/python -m tests.mutants.run docs/mutants.md

# Each condition of the verifiers taken out in turn: well over an hour on two cores.
conditions: tools
	$(VENV)/python -m tests.mutants.conditions --table docs/conditions.md

check: tools
	$(VENV)/ruff check .
	$(VENV)/mypy
	$(VENV)/lint-imports

setup:
	@ci/setup.sh

# What needs no cluster needs no engine.
tools:
	@ci/java.sh
	@ci/python.sh

# The lock names no index: whoever installs uses the one that is configured.
lock: tools
	$(VENV)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --python-version 3.11 --extra dev pyproject.toml --output-file requirements.lock
	printf '%s\n' 'uv' | $(VENV)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
	  --no-annotate --python-version 3.11 --output-file ci/uv.lock -

clean:
	$(VENV)/onceproof clean
