"""Real problems with known answers: relaxations are never below the best score, and CP-SAT reaches it."""

from pathlib import Path

import numpy as np
import pytest
from uai_cases import UaiInstance, uai_instances

from structpred.oracles.cp_sat import CpSatBoundMRF, CpSatMRF
from structpred.oracles.mrf_lp import RelaxedMRF

#: proven by CP-SAT within a deterministic time of 5; of the 20 instances these are all but DBN_11 and CSP_12
SLOWER = [
    *("Alchemy_11", "Grids_15", "ObjectDetection_34", "ObjectDetection_61", "Pedigree_12"),
    *(f"Promedus_{k}" for k in (15, 24, 29, 31, 34)),
]
QUICK = [
    *(f"{kind}_{k}" for kind, ks in (("Grids", (11, 13)), ("Segmentation", (11, 13, 15))) for k in ks),
    *(f"MAPtrack_Segmentation_{k}" for k in (12, 14, 19)),
]


def _instances(data_dir: Path, names: list[str]) -> list[UaiInstance]:
    found = uai_instances(data_dir, paired=True, names=names)
    assert len(found) == len(names)
    return found


def _reaches(instances: list[UaiInstance]) -> None:
    for instance in instances:
        labels = CpSatMRF(limit=5.0).argmax(instance.problem.scores, instance.problem.shape)
        assert instance.score(labels) == pytest.approx(instance.exact_max, abs=1e-6), instance.name


def test_cp_sat_reaches_the_exact_score(data_dir: Path) -> None:
    """Eight of the 20 instances, in half a second each at most: the best output, proven, has the score exact_max to 1e-6."""
    _reaches(_instances(data_dir, QUICK))


@pytest.mark.slow
def test_cp_sat_reaches_the_exact_score_of_larger_ones(data_dir: Path) -> None:
    """Ten more of the 20, proven as well."""
    _reaches(_instances(data_dir, SLOWER))


@pytest.mark.slow
def test_cp_sat_bounds_what_it_does_not_prove(data_dir: Path) -> None:
    """The two that are too hard within a deterministic time of 2: the bound is not below exact_max, the labels not above it."""
    for instance in _instances(data_dir, ["DBN_11", "CSP_12"]):
        labels, bound = CpSatBoundMRF(limit=2.0).argmax_bound(instance.problem.scores, instance.problem.shape)
        assert bound + instance.problem.constant >= instance.exact_max - 1e-6
        assert instance.score(labels) <= instance.exact_max + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["simplex", "first order"])
def test_relaxations_are_never_below_the_exact_score(data_dir: Path, solver: str) -> None:
    """All 20 instances: the value bounds exact_max, and where the relaxation is tight it is exact_max, its labels best."""
    oracle, n_tight = RelaxedMRF(pdlp_from=10**6 if solver == "simplex" else 0, tol=1e-5), 0
    for instance in uai_instances(data_dir, paired=True):
        if solver == "simplex" and instance.name == "CSP_12":  # 258,880 parts: a minute of simplex steps
            continue
        scores, shape = instance.problem.scores, instance.problem.shape
        labels, bound = oracle.argmax_bound(scores, shape)
        value = bound + instance.problem.constant
        assert value >= instance.exact_max - 1e-6, instance.name
        nodes = oracle.argmax_relaxed(scores, shape)[: shape[0] * shape[1]] if solver == "simplex" else np.array([0.5])
        if np.minimum(nodes, 1.0 - nodes).max() <= 1e-6:
            n_tight += 1
            assert value == pytest.approx(instance.exact_max, abs=1e-6)
            assert instance.score(labels) == pytest.approx(instance.exact_max, abs=1e-6)
    assert n_tight >= 12 or solver == "first order"
