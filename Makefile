# The words of this project; each is one command. `make` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup setup-test demo check compile unit integration test archives oracle fuzz chaos rolling two-builds bench loadtest pictures screenshots images scan sign images-test compose-demo compose-test kubernetes-test lock clean

PYTHON := .venv/bin/python
# Processes by the hundred import the same modules: what Python compiled is kept.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the words
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv, fetch the jars and the page's modules, pinned and checked; quick when done already
	@deploy/local/setup.sh

setup-test: ## setup, and what only tests need (a browser, an encoder, players and SDKs from npm)
	@deploy/local/setup.sh test

demo: $(if $(or $(filter all,$(APPS)),$(findstring recordings,$(APPS))),setup-test,setup) ## run everything with simulated players, compare with their truth [APPS=all] [VIEWS=n] [SEED=n] [KEEP=1 [LIVE=n]]
	@$(PYTHON) -m deploy.demo $(if $(VIEWS),--views $(VIEWS)) $(if $(SEED),--seed $(SEED)) $(if $(APPS),--apps $(APPS)) $(if $(KEEP),--keep) $(if $(LIVE),--live $(LIVE))

check: ## lint, format, types (the page's too), layers
	@deploy/local/setup.sh types
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	node .local/types/node_modules/typescript/bin/tsc --project deploy/fetched/types/tsconfig.json
	node .local/types/node_modules/oxlint/bin/oxlint --config deploy/fetched/types/oxlint.json --deny-warnings services/dashboard/static
	$(PYTHON) -c 'import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())'

compile: setup ## the processor's fold and the collector's intake compiled from the same source, into .local/compiled; PROCESSOR_COMPILED_DIR and COLLECTOR_COMPILED_DIR name it to a slot and a collector
	@$(PYTHON) -m deploy.compiled.build

unit: $(if $(COMPILED),compile,setup) ## the run between two changes: tests that need nothing but Python, few cases of each, without thorough ones [COMPILED=1: all, of the compiled modules]
	$(if $(COMPILED),PROCESSOR_COMPILED=required PROCESSOR_COMPILED_DIR=.local/compiled )$(PYTHON) -m pytest -n 3 --dist load tests/unit tests/contracts -m 'not integration' $(if $(COMPILED),--hypothesis-profile quick,--quick)

integration: setup-test ## the tests with a real broker, Spark, Postgres, browser
	$(PYTHON) -m tests.suite.class_archives
	$(PYTHON) -m pytest -m integration

test: setup-test ## everything, as continuous integration runs it
	@$(MAKE) --no-print-directory --jobs 2 check archives
	$(PYTHON) -m tests.suite.whole

# What the suite's JVMs and its workers start from: made while types are checked. What cannot be collected the run itself reports.
archives:
	@$(PYTHON) -m tests.suite.class_archives
	@$(PYTHON) -m pytest --collect-only --quiet >/dev/null || true

oracle: setup ## rows of generated sessions of every client beside those of a second implementation of docs/view.md [SESSIONS=n] [SEED=n]
	@$(PYTHON) -m tests.oracle $(if $(SESSIONS),--sessions $(SESSIONS)) $(if $(SEED),--seed $(SEED))

fuzz: setup ## hostile requests through the intake of every route and the fold of every application, in memory [CASES=n] [SEED=n]
	@$(PYTHON) -m tests.fuzz $(if $(CASES),--cases $(CASES)) $(if $(SEED),--seed $(SEED))

chaos: setup ## slots killed, stopped, added, removed under load, every view compared with the truth [MINUTES=n] [SEED=n] [PROFILE=production: three brokers, hosts, a network that fails; as root]
	@$(PYTHON) -m tests.chaos $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(if $(PROFILE),--profile $(PROFILE))

rolling: setup ## restart every slot under load: which partitions move, and how long beacons wait
	@$(PYTHON) -m tests.chaos.rolling

two-builds: setup-test ## slots of the last release and of this build, rolled forward and back under load and kills; needs the history of the repository
	$(PYTHON) -m pytest tests/two_builds

bench: compile ## processor, collector, hand-over, recovery, finalizer, end to end, recordings: one table; writes bench/README.md; two peers need Go and Rust
	@COLLECTOR_COMPILED_DIR=.local/compiled PROCESSOR_COMPILED_DIR=.local/compiled $(PYTHON) -m bench

loadtest: setup ## locust's players against everything on this machine; fails on any loss [SHAPE=kickoff|ads|soak|ramp] [VIEWERS=n] [SECONDS=n]
	@$(PYTHON) -m deploy.demo.load $(if $(SHAPE),--shape $(SHAPE)) $(if $(VIEWERS),--viewers $(VIEWERS)) $(if $(SECONDS),--seconds $(SECONDS))

pictures: setup-test ## take docs/page.png, of the page over generated views [FOLDER=where every screen goes, in both schemes and on a phone]
	@$(PYTHON) -m tests.pictures.page $(FOLDER)

screenshots: setup-test ## run the demo and take the screenshots of its incident for docs/tutorial.md
	@$(PYTHON) -m tests.pictures.tutorial

images: setup ## build the services' images with the docker at hand
	@$(PYTHON) -m deploy.images.build

scan: setup ## known vulnerabilities of the lock, the jars and images, by OSV's archives in a folder: DATABASE=folder [IMAGES=version]
	@$(PYTHON) -m deploy.scan $(if $(DATABASE),$(DATABASE),"") $(if $(IMAGES),--images $(IMAGES))

sign: setup ## sign the pushed images by digest with cosign: REGISTRY=registry.example.com/playhead KEY=cosign.key [VERSION=tag]
	@$(PYTHON) -m deploy.images.sign $(if $(REGISTRY),$(REGISTRY),"") --key $(if $(KEY),$(KEY),"") $(if $(VERSION),--version $(VERSION))

images-test: setup ## as root: build and run the images in a docker daemon of their own
	@deploy/local/setup.sh containers
	$(PYTHON) -m pytest -m containers tests/images/test_images.py

compose-demo: images ## deploy/compose.yaml in the docker at hand, with simulated players whose truth is compared; taken down then [VIEWS=n] [SEED=n] [SERVICES=names]
	@$(PYTHON) -m deploy.images.demo $(if $(VIEWS),--views $(VIEWS)) $(if $(SEED),--seed $(SEED)) $(SERVICES)

compose-test: setup ## as root: deploy/compose.yaml in a docker daemon of its own; containers killed under load, every view compared
	@deploy/local/setup.sh containers
	$(PYTHON) -m pytest -m containers tests/images/test_compose.py

kubernetes-test: setup ## apply the manifests to a real API server, controller manager and scheduler (built with Go the first time)
	@deploy/local/setup.sh kubernetes
	$(PYTHON) -m pytest -m kubernetes tests/kubernetes

lock: setup ## resolve pyproject.toml into requirements.lock
	$(PYTHON) -m uv pip compile pyproject.toml --universal --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --all-extras --group dev --group local --group loadtest --group ops \
		--python-version 3.11 -o requirements.lock

clean: ## remove what setup, tests and demo made
	@if [ -x $(PYTHON) ]; then $(PYTHON) -m deploy.local.clean; fi
	rm -rf .venv .local services/dashboard/static/vendor services/dashboard/static/bundle .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
