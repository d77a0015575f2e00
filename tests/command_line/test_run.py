"""Runs of the reference runtime by the command line: output, exit codes, the store, and an end in the middle."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import psutil
import pytest

from harness.model.evidence import behaviour_text, schema
from harness.store import Store
from tests.command_line.conftest import COMMAND, Crashcart, environment
from tests.mutants.mutant import catalogue

SAY_HI = """\
id: request.say-hi
claim: A claim.
clauses: [L1]
prompt: Say hi.
model:
  main:
    - say: Hi.
expect: {requests: REQUESTS, exit: 0}
"""
NEVER_ENDS = """\
id: stream.never-ends
claim: A claim.
clauses: [B3]
prompt: Say hi.
wall_seconds: WALL
model:
  main:
    - say: Hi.
      fault: {stall: {event: message_start}}
expect: {exit: 0}
"""
CRASH_NOT_REACHED = """\
id: tool.not-called
claim: A claim.
clauses: [N4]
prompt: Say hi.
crash: {at: tool.committed, tool: deploy}
tools: {deploy: {}}
model:
  main:
    - say: I would rather not.
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_green_run_prints_a_line_and_stores_evidence(crashcart: Crashcart, tmp_path: Path) -> None:
    done = crashcart("run", written(tmp_path / "hi.yaml", SAY_HI.replace("REQUESTS", "1")), "--junit", "junit.xml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].split()[:5] == ["pass", "request.say-hi", "reference", "1", "request,"]
    evidence = Store(tmp_path / "store").evidence("last")
    jsonschema.validate(
        json.loads(behaviour_text(evidence)) | {"run": "", "captured_at": "", "timings_seconds": []}, schema()
    )
    suite = ET.parse(tmp_path / "junit.xml").getroot()[0]
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("reference", "1", "0")
    shown = crashcart("show", "last")
    assert shown.stdout.startswith("pass  request.say-hi on reference@")
    assert "reproduce: crashcart run hi.yaml --runtime reference" in shown.stdout
    assert json.loads(crashcart("show", "last", "--json").stdout)["outcome"] == "pass"
    assert "request.say-hi" in crashcart("show").stdout


def test_a_red_run_says_what_was_expected_and_how_to_reproduce_it(crashcart: Crashcart, tmp_path: Path) -> None:
    done = crashcart("run", written(tmp_path / "hi.yaml", SAY_HI.replace("REQUESTS", "2")))
    assert done.returncode == 1
    assert "fail: requests.count\n    expected 2\n    actual   1\n" in done.stdout
    assert "process  started" in done.stdout
    assert "reproduce: crashcart run hi.yaml --runtime reference" in done.stdout
    again = crashcart("run", "hi.yaml", "--runtime", "reference", "--json")
    assert again.returncode == 1
    cell = json.loads(again.stdout)
    assert (cell["outcome"], cell["unmet"], cell["as_expected"]) == ("fail", ["requests.count"], False)


def test_a_scenario_alone_fills_no_cell_of_the_coverage(crashcart: Crashcart, tmp_path: Path) -> None:
    path = written(
        tmp_path / "hi.yaml", SAY_HI.replace("REQUESTS", "1").replace("request.say-hi", "loop.max-turns-terminal")
    )
    assert crashcart("run", path).returncode == 0
    assert [row.probe for row in Store(tmp_path / "store").rows()] == [None]
    assert not any(line.endswith("pass") for line in crashcart("coverage").stdout.splitlines())


def test_a_runtime_that_never_ends_is_inconclusive_and_says_what_was_last_seen(
    crashcart: Crashcart, tmp_path: Path
) -> None:
    done = crashcart("run", written(tmp_path / "stall.yaml", NEVER_ENDS.replace("WALL", "2")))
    assert done.returncode == 3
    assert "inconclusive: ending.within-bound" in done.stdout
    assert "the wall limit passed; last seen: " in done.stdout


def test_a_crash_that_was_not_reached_is_inconclusive(crashcart: Crashcart, tmp_path: Path) -> None:
    done = crashcart("run", written(tmp_path / "quiet.yaml", CRASH_NOT_REACHED))
    assert done.returncode == 3
    assert "did not fire: phase 1: SIGKILL at tool.committed" in done.stdout


def test_a_mutant_is_red_and_the_original_is_green(crashcart: Crashcart, tmp_path: Path) -> None:
    tree = catalogue()["loop.tool-error-hidden"].build(tmp_path)
    words = ["run", "loop.agent-loop-tool-feedback", "--runtime", "reference", "--runtime", f"reference@{tree}"]
    done = crashcart(*words, "--json")
    assert {cell["runtime"]: cell["outcome"] for cell in map(json.loads, done.stdout.splitlines())} == {
        "reference": "pass",
        f"reference@{tree}": "fail",
    }
    assert done.returncode == 1


def test_a_full_disk_is_said_and_the_store_still_opens(crashcart: Crashcart, tmp_path: Path) -> None:
    scenario = written(tmp_path / "hi.yaml", SAY_HI.replace("REQUESTS", "1"))
    assert crashcart("run", scenario).returncode == 0

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    done = crashcart("run", scenario, preexec_fn=no_room)
    assert done.returncode == 3
    assert "could not be stored under" in done.stderr
    assert "Traceback" not in done.stderr
    assert [row.outcome for row in Store(tmp_path / "store").rows()] == ["pass"]
    assert crashcart("run", scenario).returncode == 0
    assert len(Store(tmp_path / "store").rows()) == 2


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_an_end_in_the_middle_leaves_no_process_and_no_half_evidence(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    scenario = written(tmp_path / "stall.yaml", NEVER_ENDS.replace("WALL", "600"))
    with subprocess.Popen(
        [*COMMAND, "run", str(scenario)],
        cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        family = until_runtime_started(psutil.Process(running.pid))
        running.send_signal(number)
        _, stderr = running.communicate(timeout=60)
    gone, alive = psutil.wait_procs(family, timeout=30)
    assert alive == []
    assert len(gone) >= 2
    assert running.returncode == code
    assert Store(tmp_path / "store").rows() == []
    assert list((tmp_path / "store").glob("runs/*")) == []
    if number is not signal.SIGKILL:
        assert stderr == "interrupted; everything that was started has ended, and finished runs are stored\n"


def until_runtime_started(parent: psutil.Process) -> list[psutil.Process]:
    """Wait for the runtime under test below a process, and return all its descendants."""
    while True:
        family = parent.children(recursive=True)
        for process in family:
            try:
                if "reference_runtime" in process.cmdline():
                    return family
            except psutil.NoSuchProcess:
                continue
        if not parent.is_running() or parent.status() == psutil.STATUS_ZOMBIE:
            raise AssertionError("the command ended before it started a runtime")
