#!/bin/sh
# Finds the Chromium that the browser tests drive and writes its path to .venv/chromium.
#
# It looks at CHROMIUM, then at the names on PATH, then at what Playwright has; then it installs one: Debian's package as
# root, else Playwright's own build. It never lets the tests start without a browser: no browser is an error here.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'set-up: %s\n' "$1"; }
stop() { printf 'set-up: %s\n' "$1" >&2; exit 1; }
starts() { [ -n "$1" ] && [ -x "$1" ] && "$1" --version >/dev/null 2>&1; }
use() { printf '%s' "$1" >.venv/chromium; exit 0; }

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

if [ -n "${CHROMIUM:-}" ]; then
    named="$(command -v "$CHROMIUM" || true)"
    starts "$named" || stop "CHROMIUM names '$CHROMIUM', which does not start. Name a Chromium that does, or unset it."
    use "$named"
fi
remembered="$(cat .venv/chromium 2>/dev/null || true)"
starts "$remembered" && use "$remembered"
found="$(browser_on_path)"
[ -n "$found" ] && use "$found"
found="$(playwright_browser)"
starts "$found" && use "$found"

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "no Chromium found: installing the system package chromium"
    if apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; then
        found="$(browser_on_path)"
        [ -n "$found" ] && use "$found"
    fi
fi
say "no Chromium found: installing the build that Playwright brings, for this user"
if timeout 600 .venv/bin/python -m playwright install chromium; then
    found="$(playwright_browser)"
    starts "$found" && use "$found"
fi
stop "the browser tests need a Chromium, and none could be found or installed. They are never skipped.
        Run  sudo apt-get install -y chromium  or name one:  make test CHROMIUM=/path/to/chromium"
