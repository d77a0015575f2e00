"""Turns a scenario's ``expect:`` into checks, and adds the universal ones that every run is judged by."""

from __future__ import annotations

from harness.checks import effects, ending, faults, requests, tools
from harness.checks.check import Check
from harness.model.scenario import Expectation

UNIVERSAL: tuple[Check, ...] = (
    faults.all_fired(),
    requests.scripted(),
    ending.within_bound(),
    requests.readable(),
    requests.accepted(),
    requests.as_expected(),
    tools.every_call_answered_once(),
    ending.nothing_after_exit(),
    ending.nothing_left_running(),
)


def checks_of(expect: Expectation) -> tuple[Check, ...]:
    """Return one check for each thing that the scenario expects, in a fixed order."""
    found: list[Check] = []
    if expect.models is not None:
        found.append(requests.models(expect.models))
    if expect.requests is not None:
        found.append(requests.count(expect.requests))
    if expect.request_contains:
        found.append(requests.contain(expect.request_contains))
    if expect.results:
        found.append(tools.results(expect.results))
    found += [effects.count(tool, number) for tool, number in expect.effects.items()]
    if expect.files:
        found.append(tools.files(expect.files))
    found += [tools.hooks(event, number) for event, number in expect.hooks.items()]
    if expect.answer_contains is not None:
        found.append(ending.answer_contains(expect.answer_contains))
    if expect.output_contains is not None:
        found.append(ending.output_contains(expect.output_contains))
    if expect.turns is not None:
        found.append(ending.turns(expect.turns))
    if expect.terminal is not None:
        found.append(ending.terminal(expect.terminal))
    if expect.subtype is not None:
        found.append(ending.subtype(expect.subtype))
    if expect.exit is not None:
        found.append(ending.exit_code(expect.exit))
    return tuple(found)
