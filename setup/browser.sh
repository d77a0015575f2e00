#!/bin/sh
# Finds the Chromium that the browser tests drive and writes its path to .venv/chromium.
#
# It looks at CHROMIUM, then at what it found last time, at the names on PATH and at what Playwright has; then it installs
# one: Debian's package as root, else Playwright's own build. It never lets the tests start without a browser: that is an
# error here, because a skipped test reads as green.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'set-up: %s\n' "$1"; }
stop() { printf 'set-up: %s\n' "$1" >&2; exit 1; }
starts() { [ -n "$1" ] && [ -x "$1" ] && "$1" --version >/dev/null 2>&1; }
use() { printf '%s' "$1" >.venv/chromium; exit 0; }
is_root_with_packages() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

install_package() {
    say "installing the system package $1"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null
}

playwright_browser() {
    .venv/bin/python - <<'PYTHON' 2>/dev/null || true
from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)
PYTHON
}

browser_on_path() {
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        found="$(command -v "$name" || true)"
        if starts "$found"; then
            printf '%s' "$found"
            return
        fi
    done
}

named=""
if [ -n "${CHROMIUM:-}" ]; then
    named="$(command -v "$CHROMIUM" || true)"
    starts "$named" || stop "CHROMIUM names '$CHROMIUM', which does not start. Name a Chromium that does, or unset it."
else
    remembered="$(cat .venv/chromium 2>/dev/null || true)"
    starts "$remembered" && exit 0
fi

# A small Debian lacks the one library that Playwright's own driver needs beside the C library.
if ! .venv/bin/python -m playwright --version >/dev/null 2>&1; then
    is_root_with_packages && install_package libatomic1
    .venv/bin/python -m playwright --version >/dev/null ||
        stop "Playwright's driver does not start; why stands above. On Debian:  sudo apt-get install -y libatomic1"
fi

[ -n "$named" ] && use "$named"
found="$(browser_on_path)"
[ -n "$found" ] && use "$found"
found="$(playwright_browser)"
starts "$found" && use "$found"

say "no Chromium found for the browser tests"
if is_root_with_packages && install_package chromium; then
    found="$(browser_on_path)"
    [ -n "$found" ] && use "$found"
fi
say "installing the Chromium that Playwright brings, for this user"
if timeout 600 .venv/bin/python -m playwright install chromium; then
    found="$(playwright_browser)"
    starts "$found" && use "$found"
fi
stop "the browser tests need a Chromium, and none could be found or installed. They are never skipped.
        Run  sudo apt-get install -y chromium  or name one:  make test CHROMIUM=/path/to/chromium"
