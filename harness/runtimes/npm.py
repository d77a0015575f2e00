"""Installs packages of the npm registry into a cache keyed by name and version, and proves that they stay the same.

Install scripts never run. A version is installed into a folder of its own beside the cache entry and moved into place
when it is whole, so that two installs at once, a full disk or Ctrl-C leave no half entry. The registry is whatever npm
is set up for; nothing here names a host.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.runtimes.adapter import RuntimeUnavailableError

INSTALL_SECONDS = 600
RECORD = "crashcart-install.json"
EXACT_VERSION = re.compile(r"\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?")
"""Semantic Versioning 2.0.0, in short. A tag or a range would change its meaning behind the cache's back."""


@dataclass(frozen=True)
class NpmRecord:
    """What was installed: package, version, the executed file within the entry, its size and sha256."""

    package: str
    version: str
    program: str
    size_bytes: int
    sha256: str


def installed(package: str, version: str, program: str, cache: Path) -> tuple[Path, NpmRecord]:
    """Return the program of a package, installing it first when the cache does not hold it.

    Args:
        package: Its npm name.
        version: An exact version.
        program: The file that is executed, relative to the entry.
        cache: The folder of all entries.

    Raises:
        RuntimeUnavailableError: No npm, no such version, no space, or a program that is not the one recorded.
    """
    if not EXACT_VERSION.fullmatch(version):
        raise RuntimeUnavailableError(
            f"{package}@{version}: '{version}' is no exact version, such as 1.2.3; "
            "the versions that there are: crashcart runtimes versions NAME"
        )
    entry = cache / package.replace("/", "__").lstrip("@") / version
    if not (entry / RECORD).is_file():
        _install(package, version, program, entry)
    record = _record(package, version, entry)
    path = entry / program
    found = file_sha256(path) if path.is_file() else "missing"
    if found != record.sha256:
        raise RuntimeUnavailableError(
            f"{package}@{version}: {path} has sha256 {found}, and {record.sha256} was recorded when it was installed. "
            f"Somebody changed it; remove {entry} and run the command again to install it anew"
        )
    return path, record


def _record(package: str, version: str, entry: Path) -> NpmRecord:
    path = entry / RECORD
    try:
        return NpmRecord(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise RuntimeUnavailableError(
            f"{package}@{version}: {path} is damaged; remove {entry} and run the command again: {error}"
        ) from error


def registry_versions(package: str) -> list[str]:
    """Return the versions that the registry lists, in its order.

    Raises:
        RuntimeUnavailableError: No npm, or the registry does not answer.
    """
    what = f"the versions of {package} cannot be listed"
    output = _npm(["view", package, "versions", "--json"], what)
    try:
        listed = json.loads(output)
    except ValueError as error:
        raise RuntimeUnavailableError(f"{what}: npm printed no JSON: {output[:80]!r}") from error
    return [str(item) for item in (listed if isinstance(listed, list) else [listed])]


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _install(package: str, version: str, program: str, entry: Path) -> None:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{version}-", dir=entry.parent))
    except OSError as error:
        raise RuntimeUnavailableError(f"the cache {entry.parent} cannot be written: {error}") from error
    try:
        # A package.json makes this npm's own folder. --prefix would do so too, and move the machine's npm configuration
        # (its certificates, proxy and registry) out of npm's sight.
        (building / "package.json").write_text("{}\n", encoding="utf-8")
        _npm(
            ["install", "--ignore-scripts", "--no-audit", "--no-fund", f"{package}@{version}"],
            f"{package}@{version} cannot be installed",
            building,
        )
        path = building / program
        if not path.is_file():
            raise RuntimeUnavailableError(
                f"{package}@{version} was installed, but has no {program}; this platform may have no build of it"
            )
        record = NpmRecord(package, version, program, path.stat().st_size, file_sha256(path))
        (building / RECORD).write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")
        try:
            building.rename(entry)
        except OSError as error:
            if not entry.is_dir():
                raise
            if not (entry / RECORD).is_file():  # otherwise another install was first, and its entry is as good
                raise RuntimeUnavailableError(
                    f"{package}@{version}: {entry} is there and was not installed by crashcart; "
                    "remove it and run the command again"
                ) from error
    except OSError as error:
        raise RuntimeUnavailableError(f"{package}@{version} cannot be stored under {entry.parent}: {error}") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _npm(arguments: list[str], what: str, folder: Path | None = None) -> str:
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeUnavailableError(f"{what}: npm is not on PATH; install Node.js with npm, then run this again")
    if folder is not None:
        sys.stderr.write(f"npm {' '.join(arguments)}\n")
    try:
        done = subprocess.run(
            [npm, *arguments],
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, "npm_config_update_notifier": "false", "npm_config_loglevel": "error"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeUnavailableError(f"{what}: npm gave no answer in {INSTALL_SECONDS} s") from None
    except OSError as error:
        raise RuntimeUnavailableError(f"{what}: npm cannot be started: {error}") from error
    if done.returncode != 0:
        raise RuntimeUnavailableError(f"{what}: npm ended with {done.returncode}: {npm_reason(done.stderr)}")
    return done.stdout


def npm_reason(stderr: str) -> str:
    """Return the first lines in which npm says what was wrong, on one line."""
    lines = [line.removeprefix("npm error ").removeprefix("npm ERR! ").strip() for line in stderr.splitlines()]
    return " ".join(line for line in lines[:4] if line) or "it gave no reason"
