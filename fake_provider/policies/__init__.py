"""Policies, one file each: steps that look at the request and decide; and the register of their words.

A policy is a frozen dataclass with its settings and a pure decision. It never touches a connection, a clock or chance.
"""

from __future__ import annotations

from collections.abc import Mapping

from fake_provider.policies.insist import Insist
from fake_provider.policies.obedient import Obedient
from fake_provider.policies.policy import Decision, Occasion, Policy, PolicyKind
from fake_provider.policies.quota import Quota
from fake_provider.policies.stubborn import Stubborn
from fake_provider.policies.summarise import Summarise
from fake_provider.policies.windowed import Windowed

__all__ = ["POLICIES", "Decision", "Occasion", "Policy", "PolicyKind"]

POLICIES: Mapping[str, type[PolicyKind]] = {
    "insist": Insist,
    "obedient": Obedient,
    "quota": Quota,
    "stubborn": Stubborn,
    "summarise": Summarise,
    "windowed": Windowed,
}
"""The register of policies, by the word that a script uses."""
