# Short hand for Meson. `make run` and `make test` set up everything they need on a fresh Debian 12.
BUILD    ?= build
PREFIX   ?= /usr/local
SANITIZE  = build-asan

.PHONY: build compile run test test-long coverage bench lint install format clean

build: compile
	@echo "$(BUILD)/bunker is built; next: sudo $(BUILD)/bunker run -- uname -a"

compile: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

$(BUILD)/build.ninja:
	@tools/install-deps build
	@meson setup $(BUILD) --prefix=$(PREFIX) $(MESON_FLAGS) >$(BUILD).log || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

run: compile
	@tools/first-run $(BUILD)/bunker

# With the sanitizers and as it is released; tools/test says what runs with which.
test:
	@tools/test

test-long:
	@BUNKER_LONG=1 tools/test

# Which functions of src the suites that drive the whole program run; the others are listed in a file.
coverage:
	@BUNKER_TEST_SECONDS=3600 tools/test coverage

bench: compile
	@tools/install-deps bench
	@! command -v npm >/dev/null || tests/sdk/install
	@$(BUILD)/bench/bunker-bench --bunker $(BUILD)/bunker
	@! command -v node >/dev/null || BUNKER=$(CURDIR)/$(BUILD)/bunker node bench/network.mjs

lint:
	@tools/lint

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

install: compile
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --no-rebuild

clean:
	@rm -rf $(BUILD) $(SANITIZE) build-coverage
