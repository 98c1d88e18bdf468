# SPDX-License-Identifier: Apache-2.0
# The front door. Everything below works on a bare Debian 12 or Ubuntu 24.04: what is missing gets installed first.
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
# Two checkouts of the same sources share compiled objects.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
DEMO := tests/golden/rank_stuck_in_data_loader/input
DEMO_TRACES := tests/corpus/straggler

.PHONY: help demo hang build test sanitize check bench fuzz format tidy install docs deb dist wheel image clean

help: ## what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

build: ## build/tacet and the plugin, optimised
	@scripts/bootstrap.sh build
	@cmake --preset release -DTACET_TESTS=OFF >/dev/null
	@cmake --build --preset release -j $(JOBS)

# The plugin and the rest that `make build` makes are not needed for it.
demo: ## diagnose a recorded hang and write its page, and that of a slow job
	@scripts/bootstrap.sh build
	@cmake --preset release -DTACET_TESTS=OFF >/dev/null
	@cmake --build --preset release -j $(JOBS) -- tacet
	@echo; echo '$$ tacet diagnose $(DEMO)'; echo
	@build/tacet diagnose $(DEMO) || test $$? -eq 1
	@build/tacet diagnose --format html -o build/demo.html $(DEMO) || test $$? -eq 1
	@build/tacet profile --format html -o build/demo-profile.html $(DEMO_TRACES)
	@echo; echo 'The same as a page: build/demo.html. Where the time of a slow job goes: build/demo-profile.html'

# PyTorch is installed while the compiler runs.
hang: ## make a real hang with 4 processes of PyTorch (no GPU needed), catch it and name the culprit
	@scripts/bootstrap.sh build
	@mkdir -p build; scripts/bootstrap.sh torch >build/torch.log 2>&1 & torch=$$!; \
	cmake --preset release -DTACET_TESTS=OFF >/dev/null && cmake --build --preset release -j $(JOBS) -- tacet || exit 1; \
	wait $$torch || { cat build/torch.log; exit 1; }
	@build/tacet lab run stuck-lock --python /usr/bin/python3 --backend gloo --output build/hang

test: ## every test, on the optimised build: units, contracts, golden cases, the program itself, live and launched jobs
	@scripts/bootstrap.sh test
	@cmake --preset release -DTACET_TESTS=ON >/dev/null
	@cmake --build --preset release -j $(JOBS)
	@ctest --test-dir build --output-on-failure -j $$(( $(JOBS) + 1 )) # tests wait more than they compute

sanitize: ## the same tests under ASan and UBSan, but for those that mostly wait or start the program hundreds of times
	@scripts/bootstrap.sh test
	@cmake --preset asan >/dev/null
	@cmake --build --preset asan -j $(JOBS)
	@ctest --preset asan -j $(JOBS)

check: ## what the gate wants beside the tests: format, clang-tidy, clang with both standard libraries, web lint, fuzz smoke
	@scripts/bootstrap.sh check
	@JOBS=$(JOBS) scripts/check.sh

bench: ## speed and memory, beside the limit and the peers (see bench/README.md)
	@scripts/bootstrap.sh bench
	@cmake --preset bench >/dev/null
	@cmake --build --preset bench -j $(JOBS)
	@bench/run.sh

fuzz: ## every reader under libFuzzer, SECONDS=600 each; TARGET=nccl_log for one
	@scripts/bootstrap.sh fuzz
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz -j $(JOBS)
	@scripts/fuzz.sh build-fuzz "$(TARGET)" "$(or $(SECONDS),600)"

format: ## clang-format over all sources
	@find src plugin wire tests bench -name '*.cc' -o -name '*.h' | grep -v build | xargs clang-format -i

tidy: ## clang-tidy over the sources of the release build
	@cmake --preset release -DTACET_TESTS=OFF >/dev/null
	@find src -name '*.cc' ! -name '*_test.cc' ! -name '*_fuzz.cc' | xargs -P $(JOBS) -n 4 clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument -p build

docs: build ## the documents that are written from the code
	@build/tacet explain --markdown > docs/causes.md
	@build/tacet help --markdown > docs/commands.md

install: build ## into PREFIX (default /usr/local)
	@cmake --install build --prefix $(PREFIX)

deb: ## a Debian package of tool, plugin, units, dashboards: build-deb/tacet_*.deb
	@scripts/bootstrap.sh deb
	@cmake --preset deb >/dev/null
	@cmake --build --preset deb -j $(JOBS)
	@cd build-deb && cpack -G DEB >cpack.log || { cat cpack.log; exit 1; }
	@ls build-deb/tacet_*.deb

dist: ## tarballs and wheels for any Linux with glibc 2.28, x86_64 and aarch64 (ARCH=x86_64 for one): build-dist/out
	@scripts/bootstrap.sh dist
	@JOBS=$(JOBS) scripts/dist.sh build-dist/out $(ARCH)

wheel: dist ## the same; pip install build-dist/out/tacet-*.whl brings tool and plugin

# One name at a time: dash's `command -v` looks at its first word alone.
image: ## a container image from the tarballs in build-dist/out, with podman, docker or buildah (BASE=... for another base)
	@test -e build-dist/out/SHA256SUMS || $(MAKE) dist
	@$(or $(shell for engine in podman docker buildah; do command -v $$engine && break; done),$(error none of podman, docker and buildah is here)) build \
	  $(if $(BASE),--build-arg BASE=$(BASE)) -t tacet:$$(sed -nE 's/^project\(tacet VERSION ([0-9.]+).*/\1/p' CMakeLists.txt) -f deploy/kubernetes/Containerfile build-dist/out
	@echo 'Push it, and put the digest that the push prints into deploy/kubernetes/*.yaml: image: REGISTRY/tacet@sha256:...'

clean: ## remove all build folders
	@rm -rf build build-*
