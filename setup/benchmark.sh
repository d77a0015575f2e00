#!/bin/sh
# Finds or installs what `make bench-provider` measures with: wrk, and npm's aimock, whose path goes to .venv/aimock.
#
# wrk is Debian's package, installed only as root; aimock goes into the cache that the harness keeps by version. It never
# installs Node, and it never measures anything.
set -eu
cd "$(dirname "$0")/.."

aimock_version=1.43.0
say() { printf 'set-up: %s\n' "$1"; }
stop() { printf 'set-up: %s\n' "$1" >&2; exit 1; }

if ! command -v wrk >/dev/null; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
        stop "the benchmark needs wrk. On Debian:  sudo apt-get install -y wrk"
    say "installing the system package wrk"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends wrk >/dev/null ||
        stop "wrk could not be installed; what apt-get said stands above"
fi
command -v node >/dev/null && command -v npm >/dev/null || stop "the benchmark needs node and npm (20 or newer) for aimock"

folder="${XDG_CACHE_HOME:-$HOME/.cache}/crashcart/aimock/$aimock_version"
program="$folder/node_modules/@copilotkit/aimock/dist/cli.js"
if [ ! -f "$program" ]; then
    say "installing @copilotkit/aimock@$aimock_version from npm into $folder"
    mkdir -p "$folder"
    npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$folder" "@copilotkit/aimock@$aimock_version" ||
        stop "aimock could not be installed; what npm said stands above"
fi
[ -f "$program" ] || stop "aimock $aimock_version has no $program"
printf '%s' "$program" >.venv/aimock
