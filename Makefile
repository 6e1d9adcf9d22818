# `make chaos` runs the main scenario and prints its verdict and the path of its report. `make test` runs the unit tests,
# the mutants and the chaos tests. Both begin with `make setup`, which installs what is missing, and nothing the next time.

VENV := .venv/bin
# The folder of the scripts in a checkout, or in an unpacked source distribution.
CI := $(firstword $(wildcard ci onceproof/ci))
SCRIPTS := $(wildcard $(CI)/*.sh $(CI)/nightly .ci/run onceproof/compose/*/*.sh)
SEED ?=
SEED_OPTION := $(if $(SEED),--seed $(SEED))

.PHONY: chaos test mutants conditions check format unit docs setup tools lock hashes package clean

chaos: setup
	$(VENV)/onceproof run copy-under-fire $(SEED_OPTION)

test: setup
	@bash $(CI)/browser.sh
	$(VENV)/pytest -n 2 --dist loadgroup tests/unit tests/mutants -m "not long"
	$(VENV)/pytest tests/chaos -m "not long" $(if $(SEED),--chaos-seed=$(SEED))

unit: tools
	$(VENV)/pytest tests/unit

mutants: tools
	$(VENV)/python -m tests.mutants.run docs/mutants.md

# Removes each condition of the verifiers in turn: well over an hour on two cores.
conditions: tools
	$(VENV)/python -m tests.mutants.conditions --table docs/conditions.md

check: tools
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/lint-imports
	$(VENV)/shellcheck --external-sources --source-path=SCRIPTDIR $(SCRIPTS)

format: tools
	$(VENV)/ruff check --fix .
	$(VENV)/ruff format .

docs: tools
	$(VENV)/python -m onceproof.cli.reference docs/reference
	NO_MKDOCS_2_WARNING=1 $(VENV)/mkdocs build --strict

setup:
	@bash $(CI)/setup.sh

# Java and the Python environment, for what needs no cluster.
tools:
	@bash $(CI)/java.sh
	@bash $(CI)/python.sh

# The lock names no index: whoever installs from it uses the index that is configured.
lock: tools
	$(VENV)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --python-version 3.11 --extra dev pyproject.toml --output-file requirements.lock
	printf '%s\n' 'uv' | $(VENV)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
	  --no-annotate --python-version 3.11 --output-file $(CI)/uv.lock -

# The hashes of the releases that are known: downloads them all, which takes some minutes.
hashes: tools
	$(VENV)/python -m onceproof.cli.pins harness/artifacts/hashes.json

# The wheel and the source distribution, in dist/.
package: tools
	$(VENV)/python -m hatchling build -d dist

clean:
	$(VENV)/onceproof clean
