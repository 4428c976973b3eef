# make demo    install into .venv and let the embedded model write a story
# make test        install with the development tools, and run the tests of all that a change can break
# make test-long   the long matrices: sanitizers, cross builds, every schedule of every Metal kernel, fuzzing
# make test-all    both, as one run: what both need is collected and made once
# make test-real   trained models, which it fetches (2.3 GB, once), against what other programs say with them
# make coverage    make test, and which lines of the package it reached
# make check       formatters, linters and type checker
# make docs        the documentation as a site in build/site, where every link is checked, and manual pages in build/man
# make dev         build the compiled module into the source tree (for work on the code)
# make wheel       a wheel of this machine's kind, checked as PyPI's users get it
# make clean       remove what these made

PYTHON ?= python3
VENV ?= .venv
# How the tests run the Metal backend: emulated where clang >= 16 is (CI must have it), really on a Mac.
METAL ?= $(shell if [ "$$(uname)" = Darwin ]; then echo AUTO; elif [ -n "$$CI" ] || \
	$(PYTHON) tests/metal_emulator/compiler.py clang >/dev/null 2>&1; then echo EMULATED; else echo OFF; fi)
# Kernels of the instruction sets that this machine has: no test runs others, but Clang reads all of them
# (tests/kernels/test_warnings.py). A wheel has all, and so has CI, whose long tests look into their objects.
ISAS ?= $(if $(CI),,native)
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find cpp cuda metal python -type f -not -name '*.so' -not -path '*/__pycache__/*' 2>/dev/null)
EMULATOR := $(wildcard tests/cuda_emulator/*)
CPP := $(shell find cpp cuda tests metal -path metal/include -prune -o \( -name '*.cpp' -o -name '*.h' -o -name '*.cuh' -o -name '*.cu' -o -name '*.inl' -o -name '*.mm' \) -print 2>/dev/null)

# Compiled objects come from a cache of contents, where ccache is installed (CI must have it).
ifneq ($(shell command -v ccache)$(CI),)
export CMAKE_CXX_COMPILER_LAUNCHER := ccache
export CCACHE_DIR := $(CURDIR)/.cache/ccache
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_MAXSIZE := 2G
export CCACHE_SLOPPINESS := pch_defines,time_macros
endif

.PHONY: demo test test-long test-all test-real real-models coverage check format docs dev wheel clean

demo: $(VENV)/.installed
	$(BIN)/akunu complete "Once upon a time" --stats

# Bytecode is kept whatever the environment says: without it half of the collection, in each process of each run, is to
# rewrite `assert`s.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal

# Of the cases of large tables a sixth, which the order's seed draws; all where a part of the tests is asked for. CI runs a
# quarter of them, another one each day, and `make test-all` by itself all.
test: $(VENV)/.installed-test
	AKUNU_TEST_PART=$${AKUNU_TEST_PART:-$(if $(TESTARGS),1,6)} $(PYTEST) -m "not long" $(TESTARGS)

test-long: $(VENV)/.installed-dev
	$(PYTEST) -m long $(TESTARGS)

test-all: $(VENV)/.installed-dev
	$(PYTEST) $(TESTARGS)

# Real models are kept where AKUNU_REAL_MODELS says, or beside the cache of objects.
AKUNU_REAL_MODELS ?= $(CURDIR)/.cache/real

real-models: $(BIN)/python
	$(BIN)/python -m pip install -q numpy
	$(BIN)/python tools/real_models.py "$(AKUNU_REAL_MODELS)"

test-real: $(VENV)/.installed-test
	$(MAKE) real-models
	AKUNU_REAL_MODELS="$(AKUNU_REAL_MODELS)" $(BIN)/python -m pytest tests/real $(TESTARGS)

coverage: $(VENV)/.installed-dev
	$(PYTEST) -m "not long" --cov=akunu --cov-report=term $(TESTARGS)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/mypy
	PYTHONPATH=python $(BIN)/lint-imports --no-cache

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q
	$(BIN)/python -m akunu.cli.manual build/man

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install .
	touch $@

# Warnings are errors here: a user's newer compiler may know new ones. The headers of pybind11 are the environment's, not
# those of the folder that pip makes for each build: so the wheel's bindings are the package's, and come from the cache.
# So are CMake and Ninja, whose versions order flags differently: the wheel then finds the package's objects, and the tests
# build on what the package's build has begun, not all of the emulator again.
CHECKED = --config-settings=cmake.define.AKUNU_WERROR=ON \
	--config-settings=cmake.define.pybind11_DIR=$$($(BIN)/python -m pybind11 --cmakedir)

# The program itself, not the script that starts it: in pip's environment for a build the script finds no package, and pip
# then installs another CMake.
CMAKE_PATH = $$($(BIN)/python -c 'from cmake import CMAKE_BIN_DIR; print(CMAKE_BIN_DIR)')

PIP_BUILD = MAKEFLAGS= PATH="$(CMAKE_PATH):$(abspath $(BIN)):$$PATH" $(BIN)/python -m pip

# What the package needs is installed while its kernels compile, of which Ninja has charge, not this make's job server.
# So are the emulated GPUs compiled for which all processes of a run would wait: one file each, beside whatever leaves a
# core free, pip's first steps and the bindings at Ninja's end.
$(VENV)/.installed-test: $(BIN)/python $(SOURCES)
	$(MAKE) -j3 $(VENV)/.required-test $(VENV)/.module $(VENV)/.emulators
	touch $@ $(VENV)/.installed

# What other goals need besides: `make test` does not wait for it.
$(VENV)/.installed-dev: $(VENV)/.installed-test $(VENV)/.required-dev
	touch $@

$(VENV)/.tools: $(BIN)/python
	$(BIN)/python -m pip install -q cmake ninja pybind11
	touch $@

$(VENV)/.emulators: $(SOURCES) $(EMULATOR)
	PYTHONPATH=tests $(BIN)/python -m cuda_emulator.build
	touch $@

$(VENV)/.module: $(VENV)/.tools $(SOURCES)
	$(PIP_BUILD) install --no-deps $(CHECKED) \
		--config-settings=cmake.define.AKUNU_METAL=$(METAL) --config-settings=cmake.define.AKUNU_ISAS="$(ISAS)" .
	touch $@

$(VENV)/.required-test: $(VENV)/.tools
$(VENV)/.required-dev: | $(VENV)/.installed-test
$(VENV)/.required-%: pyproject.toml
	$(BIN)/python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
		print(*p['dependencies'], *p['optional-dependencies']['$*'], sep='\n')" >$(VENV)/$*.txt
	$(BIN)/python -m pip install -q -r $(VENV)/$*.txt
	touch $@

dev: $(BIN)/python
	$(BIN)/python -m pip install -q cmake ninja pybind11
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/cmake -S . -B build/dev -G Ninja -DAKUNU_WERROR=ON \
		-DPython_EXECUTABLE=$(abspath $(BIN))/python -Dpybind11_DIR=$$($(BIN)/python -m pybind11 --cmakedir)
	$(BIN)/ninja -C build/dev
	cd python/akunu && ln -sf ../../build/dev/_core*.so .
	mkdir -p python/akunu/lib python/akunu/include
	cd python/akunu/lib && ln -sf ../../../build/dev/libakunu.* . && ln -sf ../../../cpp/c_api/akunu.h ../include/

# Installed and run where nothing else is: what it lacks is not found by chance.
wheel: $(VENV)/.installed-dev
	rm -rf dist build/wheel-check
	$(PIP_BUILD) wheel --no-deps -w dist --config-settings=build-dir=build/wheel $(CHECKED) .
	if [ "$$(uname)" = Linux ]; then set -e; PATH="$(abspath $(BIN)):$$PATH"; auditwheel show dist/akunu-*-linux_*.whl; \
		auditwheel repair -w dist dist/akunu-*-linux_*.whl; rm dist/akunu-*-linux_*.whl; fi
	$(PYTHON) -m venv build/wheel-check
	build/wheel-check/bin/python -m pip install -q dist/akunu-*.whl
	cd build && wheel-check/bin/akunu complete "Once upon a time" --device cpu --temperature 0 -n 16

clean:
	rm -rf build dist .cache $(VENV) python/akunu/_core*.so python/akunu/lib python/akunu/include
