#!/bin/sh
# Writes requirements.lock again from pyproject.toml: exact versions for every platform, each with its hashes.
#
# The resolver lives in a throw-away environment. The file names packages and hashes only, never where they came from.
set -eu
cd "$(dirname "$0")/.."

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
printf 'set-up: installing the resolver uv into a throw-away environment\n'
"${PYTHON:-python3}" -m venv "$scratch/environment"
"$scratch/environment/bin/python" -m pip install -q --disable-pip-version-check uv
"$scratch/environment/bin/uv" pip compile -q --system-certs --universal --python-version 3.11 --generate-hashes --upgrade \
    --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
    --extra dev pyproject.toml --output-file "$scratch/requirements.lock" >/dev/null
mv "$scratch/requirements.lock" requirements.lock
printf 'set-up: wrote requirements.lock\n'
