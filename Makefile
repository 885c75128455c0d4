# `make demo` and `make test` work on a fresh clone; both build .venv first if it is missing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The constraints keep pip from replacing torch by another build.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Stamps: what is installed is as new as the files that say what to install.
RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development

.DEFAULT_GOAL := help
.PHONY: help setup engine demo test test-baseline test-changed pytest lint type format bench clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): pyproject.toml hatch_build.py constraints.txt | $(BIN)/python
	$(INSTALL) -e .
	@touch $@

# Compiled again if a source has changed; that is all that a change of the engine needs.
engine: $(RUNTIME)  ## build the engine, if its sources have changed
	@$(BIN)/python -m engine.build

$(DEVELOPMENT): $(RUNTIME)
	$(INSTALL) -e '.[bench,dask,dev,fits,heic,import,jxl,plot,raw,train,web,zstd]'
	@touch $@

setup: $(DEVELOPMENT) engine  ## install everything for development and benchmarks into .venv

demo: $(RUNTIME) engine  ## denoise a photo and write demo.png; installs only what that needs
	$(BIN)/python examples/demo.py

test: lint type pytest test-changed  ## lint, type check, and run all tests

# Three workers, whatever the machine: tests wait for processes that they have started, so a worker
# more than two CPUs keeps those busy, and the engine has threads of its own. Those of torch and BLAS
# would wait for each other.
WORKERS ?= 3
TOGETHER := --numprocesses $(WORKERS) --dist worksteal
test pytest test-baseline test-changed: export OMP_NUM_THREADS = 1
# Workers and the processes that tests start would compile all modules again and again.
test pytest test-baseline test-changed: export PYTHONDONTWRITEBYTECODE =

pytest: setup  ## the tests and the examples in docstrings
	$(BIN)/python -m pytest $(TOGETHER)

test-baseline: setup  ## the numerical tests with each smaller instruction set, and with fewer CPU features
	$(BIN)/python -m scripts.baseline $(TOGETHER)

test-changed: setup  ## test-baseline, unless engine and numerics are as they were when it last passed
	$(BIN)/python -m scripts.baseline --if-changed $(TOGETHER)

ENGINE_CODE = $(wildcard engine/*/*.[ch] engine/*/*.cpp engine/src/*/*.h)

lint: setup  ## ruff: rules and formatting; clang-format for the engine
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(ENGINE_CODE)

type: setup  ## mypy, strict, on the whole package
	$(BIN)/mypy

format: setup  ## format the code, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(ENGINE_CODE)

.PHONY: test-slow tables ship
test-slow: setup  ## the tests that take minutes: a training killed at every write
	$(BIN)/python -m pytest -m slow

tables: setup  ## evaluate the shipped models (or MODELS=...) on the test sets in DATA=, write tables and cards
	$(BIN)/python -m scripts.tables $(MODELS) $(if $(DATA),--data $(DATA))
	$(BIN)/python -m scripts.speed

ship: setup  ## add the best model of the training run RUN= to the package, and its log to docs/
	$(BIN)/python -m scripts.ship $(RUN)

# In this order: each begins with nothing, or with one before it.
OPEN_MODELS := open-gray-s25 open-gray open-gray-plus-start open-gray-plus open-color open-color-plus-start open-color-plus

.PHONY: photos models
photos: setup  ## prepare the photos in PHOTOS= (train/ and val/) for training, in build/photos
	$(BIN)/python -m scripts.photos $(PHOTOS) -o build/photos

models: photos  ## train the open models from nothing on the photos in PHOTOS=, and ship them; goes on where it stopped
	for name in $(OPEN_MODELS); do \
	  resume=$$(test ! -e runs/$$name/checkpoint.pt || echo --resume); \
	  $(BIN)/nlnet train configs/$$name.toml --data build/photos --out runs/$$name $$resume || exit 1; \
	done
	$(BIN)/python -m scripts.ship $(patsubst %,runs/%,$(filter-out %-s25 %-start,$(OPEN_MODELS)))

.PHONY: site test-site bench-site
site: setup  ## the page without a server, as files for any web server, into build/site
	$(INSTALL) -e '.[cross]'
	$(BIN)/python -m scripts.site

test-site: site  ## test the page without a server in chromium, and the package for npm in node
	@if .ci/install-browser && $(INSTALL) -e '.[browser]'; then \
		$(BIN)/python -m pytest -m site tests/browser; \
	else echo "The tests of the site are skipped."; fi

bench-site: site  ## the page without a server: its size, times beside the native command, memory, equality
	@.ci/install-browser
	$(INSTALL) -e '.[browser]'
	$(BIN)/python -m benchmarks.site
	$(BIN)/python -m scripts.load

.PHONY: test-browser fuzz fuzz-web load bench-web-memory
test-browser: setup  ## test the web page in chromium; skipped if that is missing and cannot be installed
	@if .ci/install-browser && $(INSTALL) -e '.[browser]'; then \
		$(BIN)/python -m pytest -m browser tests/browser; \
	else echo "The tests in a browser are skipped."; fi

fuzz: fuzz-files fuzz-web  ## fuzz-files and fuzz-web

fuzz-web: setup  ## 10,000 damaged uploads and 200 generated requests per operation to the web server
	NLNET_FUZZ_UPLOADS=10000 NLNET_FUZZ_EXAMPLES=200 $(BIN)/python -m pytest -s tests/test_web_fuzz.py

bench-web-memory: setup  ## the web server's memory with photos of 24 and 49 megapixels: peak, and when idle again
	$(BIN)/python -m benchmarks.web_memory
	$(BIN)/python -m scripts.load

load: setup  ## 50 clients at once for 10 minutes on the web server; prints p99 and memory
	$(BIN)/python -m benchmarks.load --seconds 600
	$(BIN)/python -m scripts.load

.PHONY: eye
eye: setup  ## train the eye, which tells what the noise is, from nothing on the photos in PHOTOS=; resumes; hours
	$(BIN)/python -m nlnet.training.eye $(PHOTOS) --out src/nlnet/noise/eye.safetensors

.PHONY: test-napari napari-screenshot
SCREEN := QT_QPA_PLATFORM=xcb xvfb-run --auto-servernum --server-args "-screen 0 1400x1000x24"
NAPARI := .ci/install-screen && $(INSTALL) -e '.[napari]' PySide6_Essentials
test-napari: setup  ## test the plugin in napari on a virtual screen; skipped if that cannot be installed
	@if $(NAPARI); then $(SCREEN) $(BIN)/python -m pytest -m napari tests/test_napari.py; \
	else echo "The tests in napari are skipped."; fi

napari-screenshot: setup  ## the picture of the plugin in docs/integrations.md
	$(NAPARI)
	$(SCREEN) $(BIN)/python -m scripts.napari_screenshot

.PHONY: error-head
error-head: setup  ## train the head of the error maps from nothing on the photos in PHOTOS=; minutes
	$(BIN)/python -m scripts.error_head $(PHOTOS)

.PHONY: fuzz-files bench-noise
fuzz-files: setup  ## 10,000 damaged image files of every format through the reader
	NLNET_FUZZ_FILES=10000 $(BIN)/python -m pytest -s tests/test_fuzz_files.py

bench-noise: setup  ## the tables and the plot of docs/files_and_noise.md; needs the data folder
	$(BIN)/python -m benchmarks.estimator
	$(BIN)/python -m benchmarks.sigmas
	$(BIN)/python -m benchmarks.raw

.PHONY: bench-real
bench-real: setup  ## real noise, compared with others, into docs/real_noise.md; resumes; an hour
	$(BIN)/python -m benchmarks.everyday
	$(BIN)/python -m benchmarks.real_noise
	$(BIN)/python -m scripts.real_noise

.PHONY: docs
docs: setup  ## build the documentation into build/docs; warnings are errors
	$(INSTALL) -e '.[docs]'
	$(BIN)/python -m sphinx -E -W --keep-going --quiet -d build/docs-cache docs build/docs
	@echo "build/docs/index.html"

bench: setup  ## measure nlnet and other denoisers, up to 24 megapixels, and update the docs: half an hour, and as long again for what has no PSNR yet
	$(BIN)/python -m benchmarks --large
	$(BIN)/python -m benchmarks.quality
	$(BIN)/python -m scripts.speed

.PHONY: bench-busy bench-command bench-training
bench-busy: setup  ## every public function while the cores are busy: at most 3 times as long as alone
	$(BIN)/python -m benchmarks.busy
	$(BIN)/python -m scripts.load

bench-command: setup  ## whole runs of nlnet denoise from a fresh install: time, memory and size
	$(BIN)/python -m benchmarks.command
	$(BIN)/python -m scripts.speed

bench-training: setup  ## a training step through the engine and through plain torch
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m scripts.speed

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build dist demo.png
	rm -f src/nlnet/engine/*nlnet_engine.*

.PHONY: dist engine-check engine-foreign engine-wasm
dist: setup  ## wheels for all platforms and the source distribution, with the weights inside, into dist/
	$(INSTALL) -e '.[cross]'
	rm -rf dist
	$(BIN)/python -m scripts.dist
	@du -h dist/*

engine-check: setup  ## the engine's test program and its fuzz target under sanitizers
	$(BIN)/python -m engine.check

engine-foreign: setup  ## the engine's test program for ARM under qemu and for Windows under wine
	$(INSTALL) -e '.[cross]'
	$(BIN)/python -m engine.foreign

engine-wasm: setup  ## build the engine for browsers, and run its test program under node
	$(INSTALL) -e '.[cross]'
	$(BIN)/python -m engine.wasm

.PHONY: screenshots
screenshots: setup  ## the pictures of the web page in docs/web.md
	.ci/install-browser
	$(INSTALL) -e '.[browser]'
	$(BIN)/python -m scripts.screenshots

.PHONY: pictures
pictures: setup  ## images with noise, by BM3D and by nlnet, as in the paper's Fig. 4 and 5
	$(BIN)/python -m scripts.paper_pictures

.PHONY: figures
figures: setup  ## the pictures of README and docs
	$(BIN)/python -m scripts.figures
