# make demo    install into .venv and let the embedded model write a story
# make test    install with the development tools, and run all tests
# make check   formatters, linters and type checker
# make dev     build the compiled module into the source tree (for work on the code)
# make clean   remove what these made

PYTHON ?= python3
VENV ?= .venv
# How the tests run the Metal backend: emulated where clang >= 16 is (CI must have it), really on a Mac.
METAL ?= $(shell if [ "$$(uname)" = Darwin ]; then echo AUTO; elif [ -n "$$CI" ] || \
	$(PYTHON) tests/metal_emulator/compiler.py clang >/dev/null 2>&1; then echo EMULATED; else echo OFF; fi)
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find cpp metal python -type f -not -name '*.so' -not -path '*/__pycache__/*' 2>/dev/null)
CPP := $(shell find cpp tests metal -path metal/include -prune -o \( -name '*.cpp' -o -name '*.h' -o -name '*.inl' -o -name '*.mm' \) -print 2>/dev/null)

.PHONY: demo test check format dev clean

demo: $(VENV)/.installed
	$(BIN)/akunu complete "Once upon a time" --stats

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal --cov=akunu --cov-report=term $(TESTARGS)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install .
	touch $@

# Warnings are errors here: a user's newer compiler may know new ones.
$(VENV)/.installed-dev: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --config-settings=cmake.define.AKUNU_WERROR=ON \
		--config-settings=cmake.define.AKUNU_METAL=$(METAL) ".[dev]"
	touch $@ $(VENV)/.installed

dev: $(BIN)/python
	$(BIN)/python -m pip install -q cmake ninja pybind11
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/cmake -S . -B build/dev -G Ninja -DAKUNU_WERROR=ON \
		-DPython_EXECUTABLE=$(abspath $(BIN))/python -Dpybind11_DIR=$$($(BIN)/python -m pybind11 --cmakedir)
	$(BIN)/ninja -C build/dev
	cd python/akunu && ln -sf ../../build/dev/_core*.so .

clean:
	rm -rf build $(VENV) python/akunu/_core*.so
