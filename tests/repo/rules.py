"""The rules of the repository: each a function from a tree to the sentences that say what breaks it.

Every sentence begins with a path, and a line where there is one. A rule reads a tree and nothing else; it never runs
the code it judges. Each has a broken example in ``test_rules.py``, because a rule that cannot turn red is a defect.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.repo.tree import PACKAGES, Tree, defined_names, make_targets, without_fences

Rule = Callable[[Tree], Iterator[str]]

FOLDERS = frozenset({*PACKAGES, "scenarios", "tests", "docs", "setup", ".ci"})
PAGES = ("README.md", "ARCHITECTURE.md", "GLOSSARY.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE")
VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "shared"})
FUNCTION_LINES_MAX = 70
CONTRIBUTING_LINES_MAX = 60

# Written so that no pattern matches its own line here.
PRIVATE_PLACES = re.compile(r"(?<![\w.])/(?:work|root|tmp/contract)/")
PACKAGE_HOSTS = re.compile(r"\b(?:pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|debian\.org|astral\.sh)\b")
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X])\b")
SKIPS = re.compile(r"\b(?:pytest\.sk[i]p\(|mark\.sk[i]p|importorsk[i]p)")

VOCABULARY = (
    "runtime under test",
    "adapter",
    "capability",
    "scenario",
    "lane",
    "step",
    "policy",
    "fault",
    "probe",
    "claim",
    "clause",
    "attempt",
    "turn",
    "tool call",
    "receipt",
    "unknown",
    "barrier",
    "hold",
    "crash point",
    "effect",
    "effect ledger",
    "epoch",
    "revision",
    "fence",
    "inspection",
    "history",
    "check",
    "outcome",
    "evidence",
    "behaviour signature",
    "baseline",
)


def every_folder_is_in_the_layout(tree: Tree) -> Iterator[str]:
    """A new top-level folder is a decision about the architecture, not an accident."""
    for folder in sorted({path.split("/")[0] for path in tree.files if "/" in path} - FOLDERS):
        yield f"{folder}/: not a folder of the layout ({', '.join(sorted(FOLDERS))}); see ARCHITECTURE.md"


def scenarios_hold_data_only(tree: Tree) -> Iterator[str]:
    """A scenario is a whole reproduction in one file, so nothing beside it may run."""
    for path in tree.under("scenarios"):
        if not path.endswith((".yaml", ".json", ".md")):
            yield f"{path}: scenarios/ holds data only"


def every_module_has_a_docstring(tree: Tree) -> Iterator[str]:
    """A module says what it is and what it never does."""
    for path, module in tree.python():
        if not ast.get_docstring(module):
            yield f"{path}:1: a module begins with a docstring that says what it is and what it never does"


def every_module_has_a_telling_name(tree: Tree) -> Iterator[str]:
    """A module named after a noun has one reason to change; a drawer has many."""
    for path, _ in tree.python():
        for part in path.removesuffix(".py").split("/"):
            if part in VAGUE_NAMES:
                yield f"{path}: '{part}' names no thing of the glossary"


def every_module_is_used(tree: Tree) -> Iterator[str]:
    """A module that nothing imports, starts or names is dead. Probes are found by looking into their folder."""
    imported: set[str] = set()
    named = [tree.text("pyproject.toml")]
    for _, module in tree.python():
        for node in ast.walk(module):
            imported.update(target for _, target in _imported(node))
            imported.update([node.module] if isinstance(node, ast.ImportFrom) and node.module else [])
            named.extend([node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else [])
    words = set(re.findall(r"[\w.]+", "\n".join(named)))
    for path, _ in tree.python():
        name, file = path.removesuffix(".py").replace("/", "."), path.rsplit("/", 1)[-1]
        found_otherwise = path.split("/")[0] not in PACKAGES or name.startswith("probes.") or file.startswith("__")
        if not found_otherwise and name not in imported | words and file not in words:
            yield f"{path}: nothing imports it, starts it or names it"


def every_function_fits_a_screen(tree: Tree) -> Iterator[str]:
    """A function that needs scrolling hides its branches; its docstring is not counted."""
    for path, module in tree.python():
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = _lines_of(node)
                if lines > FUNCTION_LINES_MAX:
                    yield f"{path}:{node.lineno}: {node.name} has {lines} lines; at most {FUNCTION_LINES_MAX}"


def _lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first, last = function.body[0], function.end_lineno or function.lineno
    documented = ast.get_docstring(function) is not None
    docstring_lines = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return last - function.lineno + 1 - docstring_lines


def _matches(tree: Tree, pattern: re.Pattern[str], why: str, *, ignoring: tuple[str, ...] = ()) -> Iterator[str]:
    for path in sorted(set(tree.files) - set(ignoring)):
        for number, line in enumerate(tree.files[path].splitlines(), 1):
            found = pattern.search(line)
            if found:
                yield f"{path}:{number}: '{found[0]}': {why}"


def no_file_names_a_private_place(tree: Tree) -> Iterator[str]:
    """A path of one person's machine is wrong on every other."""
    yield from _matches(tree, PRIVATE_PLACES, "a path of one machine only")


def no_file_names_a_package_host(tree: Tree) -> Iterator[str]:
    """Where packages come from is the machine's setting; a name in here would override it."""
    yield from _matches(tree, PACKAGE_HOSTS, "where packages come from is for the machine to say")


def nothing_is_left_unfinished(tree: Tree) -> Iterator[str]:
    """An intention belongs in an issue, where somebody looks."""
    yield from _matches(tree, UNFINISHED, "finish it, or file it as an issue")


def no_test_skips(tree: Tree) -> Iterator[str]:
    """A missing prerequisite is a failure: a skip reads as green everywhere."""
    inside = Tree({path: tree.files[path] for path in tree.under("tests", "probes")})
    yield from _matches(inside, SKIPS, "say what is missing and fail")


def every_page_is_there(tree: Tree) -> Iterator[str]:
    """The pages that a newcomer looks for by name."""
    for page in PAGES:
        if not tree.text(page).strip():
            yield f"{page}: missing or empty"
    if "Apache License" not in tree.text("LICENSE"):
        yield "LICENSE: not the text of the Apache License"
    if "## [Unreleased]" not in tree.text("CHANGELOG.md"):
        yield "CHANGELOG.md: has no section '## [Unreleased]'"
    lines = len(tree.text("CONTRIBUTING.md").splitlines())
    if lines > CONTRIBUTING_LINES_MAX:
        yield f"CONTRIBUTING.md: {lines} lines; at most {CONTRIBUTING_LINES_MAX}, or nobody reads it"


def every_dependency_is_locked(tree: Tree) -> Iterator[str]:
    """What is installed is what was tested: each package pinned, within the declared range, and hashed."""
    project = _pyproject(tree).get("project", {})
    declared = [*project.get("dependencies", ()), *_flat(project.get("optional-dependencies", {}).values())]
    locked = _locked(tree.text("requirements.lock"))
    for name, (version, hashes) in locked.items():
        if not hashes:
            yield f"requirements.lock: {name}=={version} has no hash"
    for text in declared:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name not in locked:
            yield f"requirements.lock: {name} is declared in pyproject.toml and not locked; run make lock"
        elif not requirement.specifier.contains(locked[name][0], prereleases=True):
            yield f"requirements.lock: {name}=={locked[name][0]} does not meet '{text}'; run make lock"


def _locked(text: str) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for block in re.split(r"\n(?=\S)", text):
        pin = re.match(r"([A-Za-z0-9._-]+)==([^\s;\\]+)", block)
        if pin:
            found[canonicalize_name(pin[1])] = (pin[2], block.count("--hash=sha256:"))
    return found


def _flat(groups: Any) -> list[str]:
    return [text for group in groups for text in group]


def _pyproject(tree: Tree) -> dict[str, Any]:
    return tomllib.loads(tree.text("pyproject.toml"))


def every_fault_kind_is_described_and_tested(tree: Tree) -> Iterator[str]:
    """A fault that nobody fired may do anything; a kind is a class of faults/ whose name ends in Fault."""
    tests = "\n".join(tree.files[path] for path in tree.under("tests/fake_provider", "tests/harness", "probes"))
    for path, module in tree.python():
        if not path.startswith("fake_provider/faults/") or path.endswith("/__init__.py"):
            continue
        kind = path.rsplit("/", 1)[1].removesuffix(".py")
        for node in module.body:
            if not isinstance(node, ast.ClassDef):
                continue
            if not ast.get_docstring(node):
                yield f"{path}:{node.lineno}: {node.name} does not say what a client may wrongly conclude"
            if node.name.endswith("Fault") and not re.search(rf"\b{kind}\b", tests):
                yield f"{path}: no test and no probe uses the fault '{kind}'"


def every_scenario_is_used(tree: Tree) -> Iterator[str]:
    """A scenario that nothing runs is a claim that nobody checks."""
    users = "\n".join(tree.files[path] for path in tree.under("probes", "tests") if path.endswith(".py"))
    for path in tree.under("scenarios"):
        if path.endswith(".yaml"):
            name = path.removeprefix("scenarios/").removesuffix(".yaml")
            if not re.search(rf"{re.escape(name)}(?:\.yaml)?\b", users):
                yield f"{path}: no probe and no test uses it"


def every_link_leads_somewhere(tree: Tree) -> Iterator[str]:
    """A link that leads nowhere is worse than none."""
    folders = {path.rsplit("/", depth)[0] for path in tree.files for depth in range(1, path.count("/") + 1)}
    for page, text in tree.pages():
        for number, line in enumerate(without_fences(text).splitlines(), 1):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                path = _joined(page, name) if name else page
                if path not in tree.files and path.rstrip("/") not in folders:
                    yield f"{page}:{number}: link to {target}, and there is no {path}"
                elif anchor and anchor not in _anchors(tree.text(path)):
                    yield f"{page}:{number}: link to {target}, and {path} has no such heading"


def _joined(page: str, name: str) -> str:
    parts = page.split("/")[:-1]
    for part in name.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", without_fences(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def every_command_on_a_page_exists(tree: Tree) -> Iterator[str]:
    """A page that names a command names one that runs."""
    targets, commands = make_targets(tree.text("Makefile")), _sub_commands(tree)
    for fence in tree.fences():
        for offset, line in enumerate(fence.lines, 1):
            for word in re.findall(r"^(?:\$ )?make ([a-z][a-z-]*)", line):
                if word not in targets:
                    yield f"{fence.page}:{fence.line + offset}: no target '{word}' in the Makefile"
            for word in re.findall(r"^(?:\$ )?(?:\S*/)?crashcart ([a-z][a-z-]*)", line):
                if word not in commands:
                    yield f"{fence.page}:{fence.line + offset}: crashcart has no sub-command '{word}'"


def _sub_commands(tree: Tree) -> set[str]:
    cli = tree.modules().get("harness.cli", ast.Module([], []))
    return {
        node.args[0].value
        for node in ast.walk(cli)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "add_parser"
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def every_make_target_is_explained(tree: Tree) -> Iterator[str]:
    """A target that `make help` hides is found by nobody."""
    makefile = tree.text("Makefile")
    phony = set(re.sub(r"^\.PHONY:|\\\n", "", "".join(re.findall(r"^\.PHONY:.*$", makefile, re.MULTILINE))).split())
    targets = make_targets(makefile)
    for target, explanation in targets.items():
        if not explanation:
            yield f"Makefile: '{target}' has no '## one line' for make help"
        if target not in phony:
            yield f"Makefile: '{target}' is not in .PHONY, so a file of that name would hide it"
    for target in sorted(phony - set(targets)):
        yield f"Makefile: .PHONY names '{target}', and there is no such target"


ENTRY = re.compile(r"^- \*\*(?P<term>[^*]+)\*\*(?: \((?P<names>[^)]*)\))?", re.MULTILINE)


def every_glossary_entry_is_a_thing(tree: Tree) -> Iterator[str]:
    """A word is in the glossary once, and what it names in the code is there."""
    text = tree.text("GLOSSARY.md")
    modules = {name: defined_names(module) for name, module in tree.modules().items()}
    entries = [(found["term"], found["names"] or "") for found in ENTRY.finditer(text)]
    counted = Counter(term for term, _ in entries)
    for term, count in counted.items():
        if count > 1:
            yield f"GLOSSARY.md: '{term}' is defined {count} times"
    for term in VOCABULARY:
        if term not in counted:
            yield f"GLOSSARY.md: '{term}' is not defined"
    for term, names in entries:
        for name in re.findall(r"`([\w.]+)`", names):
            owner, _, last = name.rpartition(".")
            if name not in modules and last not in modules.get(owner, set()):
                yield f"GLOSSARY.md: '{term}' names {name}, which is no module, class, function or constant here"


def every_arrow_has_a_contract(tree: Tree) -> Iterator[str]:
    """What ARCHITECTURE.md says a folder may not import is a contract that lint-imports checks, word for word."""
    linter = _pyproject(tree).get("tool", {}).get("importlinter", {})
    contracts = linter.get("contracts", ())
    page = tree.text("ARCHITECTURE.md")
    for contract in contracts:
        if contract["name"] not in page:
            yield f"ARCHITECTURE.md: does not say the contract '{contract['name']}'"
    bound = {source.split(".")[0] for contract in contracts for source in contract.get("source_modules", ())}
    for package in PACKAGES:
        if package not in bound:
            yield f"pyproject.toml: no import contract binds {package}"
        if not re.search(rf"^\| `{package}/` \|", page, re.MULTILINE):
            yield f"ARCHITECTURE.md: has no row for `{package}/`"
    known = set(tree.modules())
    for contract in contracts:
        for source in contract.get("source_modules", ()):
            if source not in known:
                yield f"pyproject.toml: contract '{contract['name']}' binds {source}, which does not exist"


ALLOWED_IMPORTS = {
    "fake_provider": ("fake_provider",),
    "reference_runtime": ("reference_runtime",),
    "harness": ("harness", "fake_provider", "probes", "reports"),
    "harness.model": ("harness.model",),
    "harness.checks": ("harness.checks", "harness.model"),
    "probes": ("probes", "harness.probe", "harness.checks"),
    "reports": ("reports", "harness.model"),
}


def every_import_is_on_its_folders_list(tree: Tree) -> Iterator[str]:
    """The contracts name what is forbidden, so a new module is forbidden to nobody; this names what is allowed."""
    for path, module in tree.python():
        name = path.removesuffix(".py").replace("/", ".")
        folder = max((at for at in ALLOWED_IMPORTS if f"{name}.".startswith(f"{at}.")), key=len, default=None)
        if folder is None:
            continue
        for node in ast.walk(module):
            for line, target in _imported(node):
                first_party = target.split(".")[0] in (*PACKAGES, "tests")
                if first_party and not f"{target}.".startswith(tuple(f"{at}." for at in ALLOWED_IMPORTS[folder])):
                    allowed = ", ".join(ALLOWED_IMPORTS[folder])
                    yield f"{path}:{line}: {folder} may not import {target}; allowed: {allowed}"


def _imported(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Import):
        yield from ((node.lineno, alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


RULES: tuple[Rule, ...] = (
    every_import_is_on_its_folders_list,
    every_folder_is_in_the_layout,
    scenarios_hold_data_only,
    every_module_has_a_docstring,
    every_module_has_a_telling_name,
    every_module_is_used,
    every_function_fits_a_screen,
    no_file_names_a_private_place,
    no_file_names_a_package_host,
    nothing_is_left_unfinished,
    no_test_skips,
    every_page_is_there,
    every_dependency_is_locked,
    every_fault_kind_is_described_and_tested,
    every_scenario_is_used,
    every_link_leads_somewhere,
    every_command_on_a_page_exists,
    every_make_target_is_explained,
    every_glossary_entry_is_a_thing,
    every_arrow_has_a_contract,
)
