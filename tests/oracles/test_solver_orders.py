"""Oracles over different solver libraries live in one process, whichever comes first; each order in a fresh process."""

import subprocess
import sys
from itertools import permutations

import pytest

ASK = {
    "convex": """
from structpred.oracles.convex import ConvexOracle
def box(shape):
    import cvxpy as cp
    mu = cp.Variable(shape[0])
    return mu, [mu >= 0, mu <= 1]
oracle = ConvexOracle(box, example_shapes=[(2,)])
assert oracle.argmax_relaxed(np.array([1.0, -1.0]), (2,)).round(6).tolist() == [1.0, 0.0]
assert oracle.project(np.array([2.0, 0.5]), (2,)).round(6).tolist() == [1.0, 0.5]
""",
    "simplex": """
from structpred.oracles.mrf_lp import RelaxedMRF
assert RelaxedMRF().argmax(np.array([0.0, 1.0]), (1, 2)).tolist() == [1]
""",
    "first_order": """
from structpred.oracles.mrf_lp import RelaxedMRF
assert RelaxedMRF(pdlp_from=0).argmax(np.array([0.0, 1.0]), (1, 2)).tolist() == [1]
""",
    "cp_sat": """
from structpred.oracles.cp_sat import CpSatMRF
assert CpSatMRF().argmax(np.array([0.0, 1.0]), (1, 2)).tolist() == [1]
""",
    "highspy": """
import highspy
assert highspy.Highs().run() is not None
""",
}
ORDERS = [
    *permutations(("convex", "simplex", "highspy")),
    ("cp_sat", "convex", "first_order"),
    ("convex", "first_order", "cp_sat"),
]


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS, ids="_then_".join)
def test_oracles_over_several_solvers_work_in_any_order(order: tuple[str, ...]) -> None:
    """cvxpy, OR-Tools and highspy, loaded as they are asked, answer rightly; the first is asked again at the end."""
    code = "import numpy as np\n" + "".join(ASK[name] for name in (*order, order[0]))
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr
