"""The rules hold for this repository, and each turns red on a small repository that breaks it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo import rules
from tests.repo.tree import ROOT, Tree, checkout

LONG_FUNCTION = '"""A module."""\ndef long() -> None:\n' + "    print()\n" * 71
PROJECT = '[project]\nname = "x"\ndependencies = ["h11>=0.16"]\n'
CONTRACT = '[[tool.importlinter.contracts]]\nname = "reports read data only"\nsource_modules = ["reports.gone"]\n'

BROKEN: list[tuple[rules.Rule, dict[str, str], str]] = [
    (rules.every_folder_is_in_the_layout, {"extras/notes.md": ""}, "extras/: not a folder of the layout"),
    (rules.scenarios_hold_data_only, {"scenarios/tool/run.py": ""}, "scenarios/tool/run.py: scenarios/ holds data"),
    (rules.every_module_has_a_docstring, {"harness/engine.py": "x = 1\n"}, "harness/engine.py:1: a module begins"),
    (rules.every_module_has_a_telling_name, {"harness/utils/__init__.py": ""}, "'utils' names no thing"),
    (
        rules.every_module_is_used,
        {"harness/engine.py": "", "harness/used.py": "", "harness/cli.py": "from harness import used"},
        "harness/engine.py: nothing imports it",
    ),
    (rules.every_function_fits_a_screen, {"harness/engine.py": LONG_FUNCTION}, "engine.py:2: long has 72 lines"),
    (rules.no_file_names_a_private_place, {"docs/a.md": "see /work" + "/main"}, "docs/a.md:1: "),
    (rules.no_file_names_a_package_host, {"Makefile": "\nget pypi" + ".org"}, "Makefile:2: 'pypi"),
    (rules.nothing_is_left_unfinished, {"reports/junit.py": "# TO" + "DO: later"}, "reports/junit.py:1:"),
    (rules.no_test_skips, {"tests/test_a.py": "pytest.sk" + "ip('no npm')"}, "tests/test_a.py:1:"),
    (rules.every_page_is_there, {"README.md": "x"}, "GLOSSARY.md: missing or empty"),
    (rules.every_page_is_there, {"LICENSE": "MIT"}, "LICENSE: not the text"),
    (rules.every_page_is_there, {"CHANGELOG.md": "# Changes"}, "CHANGELOG.md: has no section"),
    (rules.every_page_is_there, {"CONTRIBUTING.md": "a\n" * 61}, "CONTRIBUTING.md: 61 lines"),
    (rules.every_dependency_is_locked, {"pyproject.toml": PROJECT, "requirements.lock": ""}, "h11 is declared"),
    (
        rules.every_dependency_is_locked,
        {"pyproject.toml": PROJECT, "requirements.lock": "h11==0.15.0 \\\n    --hash=sha256:00\n"},
        "h11==0.15.0 does not meet 'h11>=0.16'",
    ),
    (
        rules.every_dependency_is_locked,
        {"pyproject.toml": PROJECT, "requirements.lock": "h11==0.16.0\n"},
        "h11==0.16.0 has no hash",
    ),
    (
        rules.every_fault_kind_is_described_and_tested,
        {
            "fake_provider/faults/cut.py": '"""Cut."""\nclass CutFault:\n    pass\n',
            "tests/fake_provider/test_cut.py": "cut",
        },
        "cut.py:2: CutFault does not say",
    ),
    (
        rules.every_fault_kind_is_described_and_tested,
        {"fake_provider/faults/cut.py": '"""Cut."""\nclass CutFault:\n    """Ends."""\n'},
        "no test and no probe uses the fault 'cut'",
    ),
    (
        rules.every_scenario_is_used,
        {"scenarios/tool/one.yaml": "", "probes/tool.py": "'tool/one_more.yaml'"},
        "scenarios/tool/one.yaml: no probe",
    ),
    (
        rules.every_link_leads_somewhere,
        {"docs/a.md": "[b](../b.md)"},
        "docs/a.md:1: link to ../b.md, and there is no b",
    ),
    (rules.every_link_leads_somewhere, {"a.md": "[b](#gone)\n# Here"}, "a.md has no such heading"),
    (rules.every_command_on_a_page_exists, {"a.md": "```\nmake tea\n```"}, "a.md:2: no target 'tea'"),
    (
        rules.every_command_on_a_page_exists,
        {"a.md": "```sh\n.venv/bin/crashcart brew\n```", "harness/cli.py": '"""A."""\ncommands.add_parser("run")\n'},
        "a.md:2: crashcart has no sub-command 'brew'",
    ),
    (rules.every_make_target_is_explained, {"Makefile": ".PHONY: tea\ntea: water\n\tboil\n"}, "'tea' has no '## one"),
    (rules.every_make_target_is_explained, {"Makefile": "tea: ## Boil.\n"}, "'tea' is not in .PHONY"),
    (rules.every_make_target_is_explained, {"Makefile": ".PHONY: tea\n"}, ".PHONY names 'tea'"),
    (rules.every_glossary_entry_is_a_thing, {"GLOSSARY.md": "- **lane**: x\n- **lane**: y\n"}, "'lane' is defined 2"),
    (rules.every_glossary_entry_is_a_thing, {"GLOSSARY.md": ""}, "'barrier' is not defined"),
    (
        rules.every_glossary_entry_is_a_thing,
        {"GLOSSARY.md": "- **lane** (`fake_provider.script.Lain`): x\n", "fake_provider/script.py": "class Lane: ..."},
        "'lane' names fake_provider.script.Lain",
    ),
    (
        rules.every_import_is_on_its_folders_list,
        {"reports/html.py": "from harness import driver\n"},
        "reports/html.py:1: reports may not import harness.driver; allowed: reports, harness.model",
    ),
    (
        rules.every_import_is_on_its_folders_list,
        {"harness/checks/tools.py": "def f():\n    import fake_provider.script\n"},
        "harness/checks/tools.py:2: harness.checks may not import fake_provider.script",
    ),
    (rules.every_arrow_has_a_contract, {"pyproject.toml": CONTRACT}, "does not say the contract 'reports read data"),
    (rules.every_arrow_has_a_contract, {"pyproject.toml": CONTRACT}, "no import contract binds harness"),
    (rules.every_arrow_has_a_contract, {"pyproject.toml": CONTRACT}, "ARCHITECTURE.md: has no row for `harness/`"),
    (rules.every_arrow_has_a_contract, {"pyproject.toml": CONTRACT}, "binds reports.gone, which does not exist"),
]


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_the_repository_keeps_the_rule(rule: rules.Rule) -> None:
    problems = list(rule(checkout()))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(("rule", "files", "sentence"), BROKEN)
def test_the_rule_turns_red(rule: rules.Rule, files: dict[str, str], sentence: str) -> None:
    problems = "\n".join(rule(Tree(files)))
    assert sentence in problems


def test_every_rule_has_a_broken_example() -> None:
    assert {rule for rule, _, _ in BROKEN} == set(rules.RULES)


def test_the_import_contracts_hold() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
