# The everyday commands. Each sets the machine up first (Debian; a fast no-op when all is there).
.DEFAULT_GOAL := build
.PHONY: help setup setup-min setup-test build demo tests test test-deep test-full oracle-full onnx-cases onnx-nodes onnx-devices torch-programs borders bench fuzz lint clean

BUILD := build/release
RECORD := $(BUILD)/tests.jsonl
RECORDED := TG_TEST_RECORD=$(CURDIR)/$(RECORD)
CTEST := ctest --test-dir $(BUILD) --output-on-failure -j2

help:           ## this list
	@sed -n 's/^\([a-z-]*\): .*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup:
	@tools/setup

setup-min:
	@tools/setup --min

setup-test:
	@tools/setup --test
	@tools/venv
	@tools/venv --webgpu

$(BUILD)/build.ninja:
	cmake --preset release

build: setup-min $(BUILD)/build.ninja  ## the library and the program: build/release/lib/libtinygrad.so, build/release/bin/tg
	ninja -C $(BUILD) tinygrad tg

demo: build     ## train a network on handwritten digits; draws digits.png
	$(BUILD)/bin/tg train digits --seed 0

borders: setup-min $(BUILD)/build.ninja  ## softmax of x @ w at each border of the compiler, from tensors to instructions
	@ninja -C $(BUILD) --quiet tg-borders
	@$(BUILD)/bin/tg-borders

tests: setup-test
	cmake --preset release -DTG_BUILD_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/build/venv/bin/python
	ninja -C $(BUILD)

test: tests     ## build and test everything, of what takes long a sample; says which backends were left out
	@rm -f $(RECORD)
	status=0; $(RECORDED) $(CTEST) --timeout 300 -LE '^(long|deep)$$' || status=$$?; tools/backends check --sample && exit $$status

test-deep: tests  ## after `make test`: what it leaves out of tests/deep.txt
	status=0; $(RECORDED) $(CTEST) --timeout 600 -L '^deep$$' || status=$$?; tools/backends check && exit $$status

test-full: tests  ## every test, counted ones with 20 times more cases
	TG_TEST_SCALE=20 $(CTEST) --timeout 3600

oracle-full: setup-test  ## every function against PyTorch and NumPy, model files against their own readers; writes docs/api-coverage.md
	@tools/venv --oracle
	cmake --preset release -DTG_BUILD_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/build/venv/bin/python
	ninja -C $(BUILD) tinygrad_python test_frontend_oracle
	build/venv/bin/python python/tests/model_files.py write $(BUILD)/model_files
	build/venv/bin/python tests/frontend/torch_export/make_programs.py $(BUILD)/exported 2>$(BUILD)/exported.log
	TG_EXPORTED=$(BUILD)/exported TG_MODEL_FILES=$(BUILD)/model_files TG_GGML=$$(tools/ggml) TG_GGML_BLOCKS=1000000 $(BUILD)/bin/test_frontend_oracle --gtest_brief=1
	build/venv/bin/python python/tests/model_files.py check $(BUILD)/model_files
	status=0; TG_ORACLE=full PYTHONPATH=$(BUILD)/python build/venv/bin/python -m pytest -q -p no:cacheprovider python/tests/test_oracle*.py python/tests/test_graph.py \
	  --oracle-results=$(BUILD)/oracle.json || status=$$?; \
	build/venv/bin/python python/tests/coverage_page.py $(BUILD)/oracle.json >docs/api-coverage.md && exit $$status

ONNX_CASES := TG_ONNX_CASES=build/onnx-cases $(BUILD)/bin/test_frontend_oracle --gtest_filter='OnnxCases.*' >$(BUILD)/onnx-cases.log; \
	  status=$$?; grep -E '^(simple|pytorch-converted|pytorch-operator|node)/|^onnx ' $(BUILD)/onnx-cases.log; exit $$status

onnx-cases: setup-test
	@tools/venv --onnx >&2
	cmake --preset release >&2
	ninja -C $(BUILD) test_frontend_oracle >&2
	build/venv/bin/python -W ignore tests/frontend/onnx/make_cases.py build/onnx-cases >&2

onnx-nodes: onnx-cases  ## the backend test cases of the package onnx; ends with how many of its node cases pass
	@$(ONNX_CASES)

onnx-devices: onnx-cases  ## the same on other devices: all of them interpreted, of the others a share
	DEV=INTERP $(ONNX_CASES)
	DEV=CPU:CLANG TG_ONNX_SHARE=10 $(ONNX_CASES)
	DEV=WEBGPU TG_ONNX_SHARE=10 $(ONNX_CASES)
	DEV=CL TG_ONNX_SHARE=60 $(ONNX_CASES)

torch-programs: setup-test  ## operators and models that PyTorch exports, run without it
	@tools/venv --torch >&2
	cmake --preset release >&2
	ninja -C $(BUILD) test_frontend_oracle >&2
	export_programs="build/venv/bin/python tests/frontend/torch_export/make_programs.py $(BUILD)/exported"; \
	  $$export_programs models & $$export_programs overloads && wait $$!
	TG_EXPORTED=$(BUILD)/exported $(BUILD)/bin/test_frontend_oracle --gtest_filter='TorchExport.*' --gtest_brief=1

bench: build    ## compile times, start, index arithmetic, training and its memory beside tinygrad and PyTorch; overheads
	@bench/common/peers
	@bench/compile/run $(BUILD)/bin/tg
	@bench/startup/run $(BUILD)
	@bench/replay/run $(BUILD)
	@bench/fork_join/run $(BUILD)
	@bench/indexing/run $(BUILD)
	@bench/mnist_step/run $(BUILD)
	@bench/memory/run $(BUILD)
	@bench/python/run $(BUILD)
	@bench/digits/run $(BUILD)/bin/tg
	@bench/onnx/run $(BUILD)/bin/tg
	@bench/torch_compile/run $(BUILD)
	@bench/model_files/run $(BUILD)
	@bench/overheads/run $(BUILD)
	@bench/beside/run $(BUILD)
	@bench/shards/run $(BUILD)
	@bench/kernels/run --build $(BUILD) --publish

FUZZ_SECONDS := 1200

fuzz: setup-test  ## fuzzes each reader of files for FUZZ_SECONDS (1200) with libFuzzer, under sanitizers
	@tools/fuzz $(FUZZ_SECONDS)

lint: setup     ## formatting, include directions, spelling, clang-tidy on what changed lately
	@tools/lint

clean:          ## remove everything built
	rm -rf build
