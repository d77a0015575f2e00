"""A probe is declared once, plays its scenarios, keeps the evidence of each, and never loses what was seen.

Method: probes over the small agent of ``fake_agent.py``, run by the same session object as the command line uses.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import harness.probe
from fake_provider.document import DocumentError
from harness.checks import requests
from harness.model.clause import CLAUSES, SECTIONS, render_page
from harness.model.outcome import Outcome
from harness.probe import Probe, ProbeRun, Session, all_probes, probe, single
from harness.runtimes.adapter import Installation
from harness.runtimes.register import RuntimeChoice
from harness.store import Store
from tests.harness.fake_adapter import FakeAdapter

SCENARIO = """
id: a.{name}
claim: It talks.
clauses: [A1]
prompt: Hello.
model: {{main: [{{say: Hi.}}]}}
expect: {{requests: {requests}, exit: 0}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, count in (("good", 1), ("bad", 2)):
        (tmp_path / f"{name}.yaml").write_text(SCENARIO.format(name=name, requests=count))
    return tmp_path


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Store(tmp_path / "store"), tmp_path / "cache")


def made(folder: Path, function: Callable[[ProbeRun], None], *scenarios: str) -> Probe:
    return Probe("a.probe", "It works.", ("A1",), scenarios, (), function, folder)


def choice(behaviour: str = "talks") -> RuntimeChoice:
    return RuntimeChoice(FakeAdapter(behaviour), "1.0")


def test_every_scenario_that_was_played_is_evidence_and_is_stored(folder: Path, session: Session) -> None:
    def both(run: ProbeRun) -> None:
        run.check(run.play("good.yaml"), requests.count(7))
        run.play("bad.yaml")

    result = session.run(made(folder, both, "good.yaml", "bad.yaml"), choice())
    assert result.outcome is Outcome.FAIL
    assert [check.check for check in result.unmet] == ["requests.count", "requests.count"]
    assert [(check.expected, check.actual) for check in result.unmet] == [(7, 1), (2, 1)]
    assert [evidence.input.scenario for evidence in result.evidences] == ["a.good", "a.bad"]
    assert {row.run for row in session.store.rows()} == {evidence.run for evidence in result.evidences}
    assert result.runtime == "fake@1.0"
    assert result.deviation is None


def test_a_probe_that_plays_nothing_proves_nothing(folder: Path, session: Session) -> None:
    assert session.run(made(folder, lambda run: None, "good.yaml"), choice()).outcome is Outcome.INCONCLUSIVE


def test_a_mistake_before_the_first_play_is_a_harness_error_too(folder: Path, session: Session) -> None:
    def broken(run: ProbeRun) -> None:
        run.play("undeclared.yaml")

    result = session.run(made(folder, broken, "good.yaml"), choice())
    assert result.outcome is Outcome.HARNESS_ERROR
    assert "KeyError: 'undeclared.yaml'" in result.unmet[0].detail
    assert len(session.store.rows()) == 1


def test_a_declared_scenario_that_is_never_played_is_a_harness_error(folder: Path, session: Session) -> None:
    result = session.run(made(folder, lambda run: run.check(run.play("good.yaml")), "good.yaml", "bad.yaml"), choice())
    assert result.outcome is Outcome.HARNESS_ERROR
    assert "declares bad.yaml and never plays it" in result.unmet[0].detail


def test_a_mistake_in_a_probe_is_a_harness_error_and_what_was_seen_is_kept(folder: Path, session: Session) -> None:
    def broken(run: ProbeRun) -> None:
        run.play("good.yaml")
        raise KeyError("mine")

    result = session.run(made(folder, broken, "good.yaml"), choice())
    assert result.outcome is Outcome.HARNESS_ERROR
    [evidence] = result.evidences
    assert len(evidence.history.requests()) == 1
    assert evidence.checks[0].detail == "KeyError: 'mine'"


def test_a_mistake_in_a_scenario_is_raised_before_anything_starts(folder: Path, session: Session) -> None:
    (folder / "bad.yaml").write_text("id: [")
    with pytest.raises(DocumentError):
        session.run(made(folder, lambda run: None, "good.yaml", "bad.yaml"), choice())
    assert session.store.rows() == []


def test_a_runtime_is_installed_once_for_all_threads(folder: Path, session: Session) -> None:
    installs: list[str] = []

    class Counting(FakeAdapter):
        def install(self, version: str, cache: Path) -> Installation:
            installs.append(version)
            return super().install(version, cache)

    counted = RuntimeChoice(Counting("talks"), "1.0")
    threads = [threading.Thread(target=session.prepare, args=(counted,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert installs == ["1.0"]


def test_a_file_of_the_users_own_is_a_probe(folder: Path, session: Session) -> None:
    result = session.run(single(folder / "good.yaml"), choice())
    assert (result.probe, result.claim, result.outcome) == ("a.good", "It talks.", Outcome.PASS)


def test_the_reproduction_can_be_pasted_into_a_shell(tmp_path: Path, session: Session) -> None:
    folder = tmp_path / "my scenarios; $HOME"
    folder.mkdir()
    path = folder / "good.yaml"
    path.write_text(SCENARIO.format(name="good", requests=1))
    [evidence] = session.run(single(path), choice()).evidences
    assert shlex.split(evidence.reproduce) == ["crashcart", "run", str(path), "--runtime", "fake@1.0"]
    assert evidence.reproduce.startswith("crashcart run '")


def test_a_declaration_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness.probe, "PROBES", {})

    def declare(clauses: tuple[str, ...]) -> Probe:
        return probe(id="a.b", claim="It works.", clauses=clauses, scenarios=(), mutants=())(lambda run: None)

    with pytest.raises(ValueError, match=r"probe 'a.b': unknown clauses \['Z9'\]"):
        declare(("A1", "Z9"))
    declare(("A1",))
    with pytest.raises(ValueError, match=r"probe 'a.b' is there twice"):
        declare(("A1",))


def test_the_probes_of_the_repository_can_all_be_played() -> None:
    probes = all_probes()
    assert len(probes) >= 10
    for one in probes:
        assert one.claim.endswith("."), one.id
        assert one.mutants, f"{one.id} has no negative control"
        assert set(one.load()) == set(one.scenarios), one.id
        assert set(one.clauses) <= set(CLAUSES), one.id


def test_every_clause_stands_in_its_section() -> None:
    page = render_page()
    for clause in CLAUSES.values():
        assert clause.id[0] in SECTIONS
        assert page.count(f"- **{clause.id}** {clause.duty}\n") == 1
        assert clause.duty.endswith(".")
