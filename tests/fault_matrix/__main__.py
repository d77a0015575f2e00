"""``python -m tests.fault_matrix``: run the matrix and print the page."""

from __future__ import annotations

import asyncio
import sys

from tests.fault_matrix.cases import FAULTY, GOOD
from tests.fault_matrix.observation import CELLS
from tests.fault_matrix.page import render
from tests.fault_matrix.run import run_all

sys.stdout.write(render(asyncio.run(run_all([*GOOD, *FAULTY], CELLS))))
