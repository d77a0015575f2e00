# Every command a person or a machine needs here. `make` alone lists them.
#
# What is installed is said, and goes into .venv/. Outside it: as root, the system packages python3-venv, chromium and
# libatomic1 where they are needed and missing; not as root, the Chromium that Playwright brings, when there is no other; and
# for `make test-real` the agent, into the cache that the harness keeps by version.
# Variables: PYTHON (which Python makes .venv), CHROMIUM (which browser the tests drive), PYTEST (extra words for pytest),
# RUNTIME (what `make demo` runs on: one or more of NAME[@VERSION]), PROBE (which probes it runs; all when empty).

PYTHON ?= python3
PYTEST ?=
RUNTIME ?= reference
PROBE ?=
RUN := .venv/bin/python -m

.DEFAULT_GOAL := help
.PHONY: help demo test test-real check format docs faults readme mutants fuzz bench-provider lock environment browser clean

help: ## List these targets.
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

demo: environment ## Set up what running needs, then run every probe on the reference runtime.
	@.venv/bin/crashcart run $(PROBE) $(foreach name,$(RUNTIME),--runtime $(name))

test: environment browser ## Set up everything with a browser, then run the tests that need no real agent.
	CHROMIUM="$$(cat .venv/chromium)" $(RUN) pytest -n auto -m "not real" $(PYTEST)

test-real: environment ## Install Claude Code 2.1.235 from npm into the cache, then run the tests that need it.
	.venv/bin/crashcart runtimes install claude-code@2.1.235
	$(RUN) pytest -m real $(PYTEST)

check: environment ## Lint, formatting, types and import contracts; changes nothing.
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	$(RUN) mypy
	$(RUN) mypy setup/*.py
	.venv/bin/lint-imports --no-logo

format: environment ## Rewrite the code in the project's format.
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

docs: environment ## Write the pages that are rendered from tables and types again.
	mkdir -p .venv/pages
	$(RUN) reference_runtime.recovery > .venv/pages/recovery.md
	.venv/bin/python -c 'from harness.model import clause; print(clause.render_page(), end="")' > .venv/pages/contract.md
	$(RUN) reports.schema > .venv/pages/evidence.schema.json
	$(RUN) harness.scenario_schema > .venv/pages/scenario.schema.json
	cp .venv/pages/*.md docs/
	cp .venv/pages/evidence.schema.json reports/
	cp .venv/pages/scenario.schema.json scenarios/

faults: environment ## Show every fault to the official clients and write docs/faults.md from what they did.
	mkdir -p .venv/pages
	$(RUN) tests.fault_matrix > .venv/pages/faults.md
	cp .venv/pages/faults.md docs/

readme: environment ## Run README's first command and write its output into the page again.
	.venv/bin/python setup/readme_block.py

mutants: environment ## Break the reference runtime in each known way and print which probe saw it.
	$(RUN) tests.mutants

fuzz: environment ## Try the provider with 100,000 invented inputs; takes minutes, and is no part of make test.
	$(RUN) tests.fuzz

bench-provider: environment ## Measure the provider against aiohttp and aimock, and write docs/performance.md again.
	@sh setup/benchmark.sh
	$(RUN) tests.provider_benchmark --aimock "$$(cat .venv/aimock)" --output docs/performance.md

lock: ## Choose the newest allowed packages and write requirements.lock again.
	@PYTHON="$(PYTHON)" sh setup/lock.sh

environment: ## Make .venv with the locked packages; quick when nothing changed.
	@PYTHON="$(PYTHON)" sh setup/environment.sh

browser: environment ## Find a Chromium for the tests, or install one.
	@sh setup/browser.sh

clean: ## Remove what make made; keeps .crashcart, where your runs are stored.
	rm -rf .venv .mypy_cache .ruff_cache .import_linter_cache .hypothesis .pytest_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
