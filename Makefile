# Everything that can be done with this repository, from a fresh clone on: `make help`.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MANIFESTS := requirements.lock $(wildcard libs/*/pyproject.toml services/*/pyproject.toml)

# uv installs everything else. Where there is none, it is put into a folder of this repository; nothing outside is touched.
UV := $(shell command -v uv 2>/dev/null || echo .venv-bootstrap/bin/uv)
UV_REQUIREMENT := uv>=0.9,<1
PYTHON := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$python && break; done)
export UV_PYTHON_DOWNLOADS := never
# Python keeps its bytecode, whatever the environment says: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/.bytecode
export PIP_ROOT_USER_ACTION := ignore

# What a run of the tests needs of the control plane's programs is found or fetched once: by the first test that asks for it, or before all of them.
PYTEST := $(BIN)/python -m pytest
# So many at once, on two cores: end-to-end tests wait half of the time. A test file goes to one of them, since the tests
# of a file share a control plane. Files keep their order: by number of tests, the longest test would come last.
WORKERS ?= 3
IN_PARALLEL = --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
# The control planes of tests have memory to spare, but no CPU.
RARE_GC = GOGC=400
ASSETS = KUBEBUILDER_ASSETS="$$($(BIN)/metaloop assets | tail -n 1)"

.DEFAULT_GOAL := help
.PHONY: help setup demo up test lint format types unit e2e chart-test compose-test bench chaos simulate dist images deploy lock ci clean

help: ## List what can be done
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Install everything into .venv; does nothing when nothing changed

demo: setup ## Play the first example: a real cluster, 20 parents, changes, repairs, a killed reconciler
	@$(BIN)/metaloop demo

up: setup ## Run the whole stack and leave it running until Ctrl-C; prints the KUBECONFIG to use
	@$(BIN)/metaloop up

test: lint types unit e2e ## Run everything that CI runs

lint: setup ## Check style, format and import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache
	$(BIN)/zizmor --quiet --offline .github

format: setup ## Bring the code into its format, and fix what can be fixed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: setup ## Check types
	$(BIN)/pyright

unit: setup ## Run the core and stage tests, WORKERS (3) at once
	$(PYTEST) $(IN_PARALLEL) -m "not e2e and not chaos and not chart"

e2e: setup ## Run the end-to-end tests against real control planes, WORKERS (3) at once
	$(RARE_GC) $(ASSETS) $(PYTEST) $(IN_PARALLEL) -m "e2e and not chaos"

chart-test: setup ## Compare the Helm chart with the kustomize overlays, by the real helm; it is built once, in two minutes
	$(ASSETS) $(PYTEST) -m chart tests/chart

compose-test: setup ## Run the compose file with Docker: a controller converges, a reconciler is killed; PROFILE=observe checks traces, too
	tests/compose/run.sh

chaos: setup ## Kill, stall and part processes, and see that nothing is lost or done twice
	$(ASSETS) $(PYTEST) -m chaos
	$(ASSETS) $(BIN)/python -m bench.chaos

simulate: setup ## Run the services on virtual time: a crash at each point of 13 stories, and 500 seeds of faults
	$(BIN)/python -m metaloop.simulation --workers $(WORKERS)

bench: setup ## Measure the whole system; judge exact counts, and ratios within the run
	$(ASSETS) $(BIN)/python -m bench

dist: setup $(UV) ## Write what a release publishes into dist: packages, manifests, bill of materials, licences, checksums
	$(ASSETS) UV=$(UV) $(BIN)/python -m release dist

images: ## Build the image of the services, metaloop:dev; BASE=… names another Python image
	docker build --file deploy/Dockerfile --tag metaloop:dev --build-arg REVISION=$$(git rev-parse HEAD) $(if $(BASE),--build-arg PYTHON=$(BASE)) .

deploy: ## Build the image, hand it to a cluster and install it: IMAGE, LOAD and OVERLAY as deploy/install.sh says (kind, dev)
	deploy/install.sh

lock: $(UV) ## Write requirements.lock anew from the packages' requirements, with the newest versions that they allow
	@rm -f uv.lock
	$(UV) export --quiet --all-packages --all-groups --no-emit-workspace --no-header --format requirements.txt --output-file requirements.lock
	@rm -f uv.lock

ci: ## Run what CI runs, the way it does
	bash .ci/run

clean: ## Remove the environment and all caches of this folder
	rm -rf $(VENV) .venv-bootstrap .bytecode .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(STAMP): $(MANIFESTS) | $(UV)
	@test -n "$(PYTHON)" || { echo "setup: no Python 3.11 or newer on the PATH" >&2; exit 1; }
	@test -x $(BIN)/python || $(UV) venv --quiet --python "$(PYTHON)" $(VENV)
	@echo "setup: installing the locked packages into $(VENV) (seconds when they are cached, a minute or two when not) ..." >&2
	@started=$$(date +%s); \
	for member in libs/* services/*; do echo "-e ./$$member"; done \
		| VIRTUAL_ENV=$(VENV) $(UV) pip sync --quiet requirements.lock - \
		&& echo "setup: done after $$(($$(date +%s) - started)) s" >&2
	@touch $@

.venv-bootstrap/bin/uv:
	@echo "setup: installing uv into .venv-bootstrap ..." >&2
	@test -n "$(PYTHON)" || { echo "setup: no Python 3.11 or newer on the PATH" >&2; exit 1; }
	@rm -rf .venv-bootstrap
	@if "$(PYTHON)" -m venv .venv-bootstrap 2>/dev/null; then .venv-bootstrap/bin/python -m pip install --quiet "$(UV_REQUIREMENT)"; \
	else "$(PYTHON)" -m pip install --quiet --target .venv-bootstrap "$(UV_REQUIREMENT)"; fi
