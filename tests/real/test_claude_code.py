"""Claude Code under test: every probe is as its expectation file says, and its evidence is whole and repeatable."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import EXIT_UNSUPPORTED, cache_folder, exit_code
from harness.model.evidence import behaviour_text, decode, encode
from harness.model.outcome import Outcome
from harness.probe import PROBES, Session, all_probes, single
from harness.runtimes.adapter import RuntimeUnavailableError
from harness.runtimes.claude_code.adapter import PACKAGE, PROGRAM, ClaudeCodeAdapter
from harness.runtimes.npm import installed
from harness.runtimes.register import chosen
from reports.table import line
from tests.real.conftest import VERSION

pytestmark = pytest.mark.real
CHOICE = chosen(f"claude-code@{VERSION}")
NEEDS_IDLE_LIMIT = """\
id: stream.needs-idle-limit
claim: A claim.
clauses: [B3]
prompt: Say hi.
settings: {stream_idle_timeout_seconds: 1}
model:
  main:
    - say: Hi.
"""


@pytest.mark.parametrize("probe", [probe.id for probe in all_probes()])
def test_probe_is_as_the_expectation_file_says(session: Session, probe: str) -> None:
    result = session.run(PROBES[probe], CHOICE)
    assert result.as_expected is None, f"{result.as_expected}\n{line(result)}"
    for evidence in result.evidences:
        assert (evidence.target.runtime, evidence.target.version) == ("claude-code", VERSION)
        assert evidence.environment["isolation"] == "network namespace"
        assert decode(encode(evidence)) == evidence


def test_two_runs_of_one_behaviour_give_one_text(session: Session) -> None:
    probe = PROBES["tool.crash-after-effect"]
    first, second = (session.run(probe, CHOICE).evidences[0] for _ in range(2))
    assert behaviour_text(first) == behaviour_text(second)


def test_a_repeated_deploy_is_seen_by_the_ledger_and_not_by_the_exit_code(session: Session) -> None:
    result = session.run(PROBES["tool.crash-after-effect"], CHOICE)
    assert result.outcome is Outcome.FAIL
    assert result.evidences[0].observed["effects"] == {"deploy": 2}
    assert result.evidences[0].observed["exit"] == 0


def test_a_setting_that_the_adapter_cannot_translate_is_unsupported(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "idle.yaml"
    path.write_text(NEEDS_IDLE_LIMIT)
    result = session.run(single(path), CHOICE)
    assert result.outcome is Outcome.UNSUPPORTED
    assert exit_code([result.outcome]) == EXIT_UNSUPPORTED
    assert "stream_idle_limit" in result.evidences[0].checks[0].detail


def test_a_changed_binary_is_refused(session: Session, tmp_path: Path) -> None:
    path, record = installed(PACKAGE, VERSION, PROGRAM, cache_folder())
    entry = tmp_path / "anthropic-ai__claude-code" / VERSION
    (entry / PROGRAM).parent.mkdir(parents=True)
    (entry / "crashcart-install.json").write_bytes((path.parents[3] / "crashcart-install.json").read_bytes())
    (entry / PROGRAM).write_bytes(b"#!/bin/sh\necho 2.1.235\n")
    (entry / PROGRAM).chmod(0o755)
    with pytest.raises(RuntimeUnavailableError, match=f"{record.sha256} was recorded when it was installed"):
        ClaudeCodeAdapter().install(VERSION, tmp_path)


def test_a_version_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(RuntimeUnavailableError, match=r"claude-code@0\.0\.0 cannot be installed: npm ended with 1"):
        ClaudeCodeAdapter().install("0.0.0", tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
