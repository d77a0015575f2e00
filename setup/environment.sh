#!/bin/sh
# Makes .venv with the packages that requirements.lock pins by hash, and the project itself as an editable install.
#
# It assumes Python 3.11 and nothing else: Debian's Python comes without ensurepip and without pip. It installs outside .venv
# only as root, only python3-venv, and says so. It never asks for a password and never installs an unpinned package.
# The stamp names everything the environment was made from, its own place included, because scripts in it hold that place.
set -eu
cd "$(dirname "$0")/.."

PYTHON="${PYTHON:-python3}"
PIP_DISABLE_PIP_VERSION_CHECK=1
# By itself uv knows only its own certificates; pip asks the system's store. The name of the setting has changed once.
UV_SYSTEM_CERTS=1
UV_NATIVE_TLS=1
export PIP_DISABLE_PIP_VERSION_CHECK UV_SYSTEM_CERTS UV_NATIVE_TLS

say() { printf 'set-up: %s\n' "$1"; }
stop() { printf 'set-up: %s\n' "$1" >&2; exit 1; }

command -v "$PYTHON" >/dev/null 2>&1 ||
    stop "no '$PYTHON' found. Install Python 3.11 or newer, or name one you have: make PYTHON=/path/to/python3.11 ..."
version="$("$PYTHON" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')" || stop "'$PYTHON' does not start."
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    stop "Python 3.11 or newer is needed, and '$PYTHON' is $version. Name another: make PYTHON=/path/to/python3.11 ..."
[ -w . ] || stop "this folder cannot be written by $(id -un); clone it to a place that you own."

wanted="$(cat requirements.lock pyproject.toml setup/environment.sh | sha256sum | cut -d ' ' -f 1) $version $PWD"
if [ -x .venv/bin/python ] && [ "$(cat .venv/installed 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi

environment_works() { [ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null; }
environment_has_pip() { .venv/bin/python -m pip --version >/dev/null 2>&1; }
outer_pip_works() { "$PYTHON" -m pip --python "$(command -v "$PYTHON")" --version >/dev/null 2>&1; }
can_install() { environment_has_pip || outer_pip_works || command -v uv >/dev/null; }
environment_moved() { [ -f .venv/installed ] && [ "$(cut -d ' ' -f 2- .venv/installed)" != "$version $PWD" ]; }

make_environment() {
    rm -rf .venv
    if "$PYTHON" -c 'import ensurepip' 2>/dev/null; then
        say "making .venv with $PYTHON ($version)"
        "$PYTHON" -m venv .venv && return
        rm -rf .venv
    fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "this Python cannot make environments yet: installing the system package python3-venv"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv \
            >/dev/null && "$PYTHON" -m venv .venv && return
        rm -rf .venv
    fi
    if outer_pip_works; then
        say "this Python has no ensurepip: making .venv without pip, and filling it with the pip of $PYTHON"
        "$PYTHON" -m venv --without-pip .venv && return
        rm -rf .venv
    fi
    if command -v virtualenv >/dev/null; then
        say "this Python has no ensurepip: making .venv with virtualenv"
        virtualenv -q -p "$PYTHON" .venv && return
        rm -rf .venv
    fi
    if command -v uv >/dev/null; then
        say "this Python has no ensurepip: making .venv with uv"
        uv venv -q --python "$PYTHON" .venv && return
        rm -rf .venv
    fi
    stop "'$PYTHON' cannot make environments: ensurepip is missing, and there is no pip, virtualenv or uv to stand in.
        Run this once, then make again:  sudo apt-get install -y python3-venv"
}

pip_install() {
    if environment_has_pip; then
        .venv/bin/python -m pip install -q "$@"
    elif outer_pip_works; then
        "$PYTHON" -m pip --python .venv/bin/python install -q "$@"
    else
        uv pip install -q --python .venv/bin/python "$@"
    fi
}

# One that was interrupted while it was made may work and still have nothing to install with.
if ! environment_works || environment_moved || ! can_install; then
    make_environment
fi
rm -f .venv/installed
say "installing the packages of requirements.lock into .venv, each checked against its hash"
pip_install --require-hashes -r requirements.lock ||
    stop "the packages could not be installed; what pip said stands above. Is the package index in reach?"
say "installing crashcart itself into .venv, editable"
pip_install --no-deps --no-build-isolation -e . || stop "crashcart itself could not be installed; what pip said stands above."
printf '%s' "$wanted" >.venv/installed
say "ready: .venv ($version)"
