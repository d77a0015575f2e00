"""The lines to paste are valid shell, and point each client at the provider's address."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fake_provider.clients import CLIENTS, UnknownClientError, base_url, environment, lines_for
from fake_provider.dialects import DIALECTS
from tests.fake_provider.dialect_requests import NAMES

URL = "http://127.0.0.1:8123"


@pytest.mark.parametrize("name", CLIENTS)
def test_a_shell_takes_the_lines_and_the_client_finds_the_address(name: str, tmp_path: Path) -> None:
    lines = lines_for(name, URL)
    set_up = [line for line in lines.splitlines() if not line.startswith(("claude ", "codex ", *STARTS))]
    shell = "\n".join([*set_up, "env", "find . -type f -exec cat {} +"])
    done = subprocess.run(
        ["sh", "-eu"],
        input=shell,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert URL in done.stdout
    assert "{url}" not in lines
    assert CLIENTS[name].dialect in DIALECTS


STARTS = ("gemini ", "opencode ", "reasonix ", "qwen ", "pi ", "kimi ")


def test_an_unknown_client_names_the_nearest() -> None:
    with pytest.raises(UnknownClientError, match="no client 'codx'; did you mean 'codex'"):
        lines_for("codx", URL)


@pytest.mark.parametrize("dialect", NAMES)
def test_a_dialect_has_a_base_url_and_the_variables_of_its_official_client(dialect: str) -> None:
    assert base_url(dialect, URL) == URL + ("/v1" if dialect.startswith("openai") else "")
    assert base_url(dialect, URL) in environment(dialect, URL).values()
    assert len(environment(dialect, URL)) == 2
