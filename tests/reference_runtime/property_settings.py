"""How property tests run here: the same examples each time and no deadline, since machines differ in speed."""

from hypothesis import HealthCheck, settings

QUICK = settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
SCHEDULES = settings(QUICK, max_examples=60)
