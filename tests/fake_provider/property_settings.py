"""How property tests run here: few enough examples for a quick suite, and no deadline, because machines differ."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
