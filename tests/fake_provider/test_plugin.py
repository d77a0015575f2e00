"""The pytest plugin in a pytest of its own: fixtures, the judgement at the end, xdist, and the example of the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ASK = """
import httpx

def ask(provider):
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    return httpx.post(provider.url + "/v1/messages", headers=headers, json=body)
"""
PLUGIN = ("-p", "fake_provider.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:randomly")


def ran(pytester: pytest.Pytester, text: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(ASK + text)
    return pytester.runpytest_subprocess(*PLUGIN, *arguments)


def test_a_good_test_passes(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
def test_it(fake_provider):
    fake_provider.script(["overloaded", {"say": "hi"}])
    assert [ask(fake_provider).status_code for _ in range(2)] == [529, 200]
    fake_provider.expect(attempts=2, statuses=[529, 200])

def test_a_session_has_one(fake_provider_session):
    fake_provider_session.script([{"say": "hi"}])
    assert ask(fake_provider_session).status_code == 200

def test_which_begins_anew_with_each_script(fake_provider_session):
    fake_provider_session.script([{"say": "hi"}])
    assert ask(fake_provider_session).status_code == 200
    assert len(fake_provider_session.attempts()) == 1
""",
    )
    result.assert_outcomes(passed=3)


def test_an_unexpected_request_is_an_error_at_the_end_with_advice(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
def test_it(fake_provider):
    fake_provider.script(["overloaded"])
    [ask(fake_provider) for _ in range(2)]

def test_lenient(fake_provider):
    fake_provider.lenient().script(["overloaded"])
    [ask(fake_provider) for _ in range(2)]
""",
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "request 2 was unexpected: the script of lane 'main' is used up (steps: 1)",
            "#  dialect *",
            "Script an answer for each request*",
        ]
    )


def test_a_fault_that_did_not_strike_is_an_error(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
def test_it(fake_provider):
    fake_provider.script([{"say": "hi", "cut": {"event": "text"}}])
    ask(fake_provider)
""",
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["fault 'cut' of request 1 did not strike: *"])


def test_a_failed_test_shows_what_the_provider_saw(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
def test_it(fake_provider):
    fake_provider.script(["overloaded"])
    assert ask(fake_provider).status_code == 200
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*what fake_provider saw*", "1  anthropic_messages  main: overloaded  m * 529"])


def test_every_worker_has_its_own(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
import pytest

@pytest.mark.parametrize("number", range(6))
def test_it(fake_provider, fake_provider_session, number):
    for provider in (fake_provider, fake_provider_session):
        provider.script([{"say": str(number)}])
        assert str(number) in ask(provider).json()["content"][0]["text"]
""",
        "-n",
        "2",
    )
    result.assert_outcomes(passed=6)


def test_loading_the_plugin_imports_nothing_of_the_provider() -> None:
    code = "import fake_provider.pytest_plugin, sys; print([n for n in sys.modules if n.startswith('fake_provider')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['fake_provider', 'fake_provider.pytest_plugin']"


def test_the_example_of_the_page_runs(pytester: pytest.Pytester) -> None:
    page = (Path(__file__).parents[2] / "docs" / "provider.md").read_text(encoding="utf-8")
    examples = [
        block.split("```")[0] for block in page.split("```python\n")[1:] if "def test_" in block.split("```")[0]
    ]
    assert examples
    for number, example in enumerate(examples):
        pytester.makepyfile(**{f"test_example_{number}": example})
    result = pytester.runpytest_subprocess(*PLUGIN, "-o", "asyncio_mode=auto")
    outcomes = result.parseoutcomes()
    assert set(outcomes) == {"passed"}
