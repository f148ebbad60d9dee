"""Every oracle in structpred.oracles satisfies its contract; a new file there is found by itself."""

import inspect

import pytest

from structpred.contracts.checks import check_oracle
from structpred.core.oracle import Oracle
from structpred.runtime.discovery import public_subclasses


def discovered() -> list[type[Oracle]]:
    """All oracle classes that can be made without arguments, from every public module of the package."""
    return [kind for kind in public_subclasses("structpred.oracles", Oracle) if _plain(kind)]


def _plain(kind: type[Oracle]) -> bool:
    parameters = inspect.signature(kind).parameters.values()
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def cases() -> list[object]:
    """Each of them; branch and bound takes most of a minute to compile."""
    return [pytest.param(k, marks=pytest.mark.slow) if k.__name__ == "BranchAndBoundMRF" else k for k in discovered()]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", cases(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_oracle_keeps_its_contract(kind: type[Oracle], seed: int) -> None:
    """Exact, feasible, deterministic, batch equal to loop, optional methods right: against enumeration on its example shapes; the
    first seed draws few scores, and expensive oracles get small shapes then."""
    oracle = kind()
    shapes = [shape for shape in oracle.example_shapes() if seed or not kind.expensive or oracle.n_parts(shape) <= 24]
    report = check_oracle(oracle, shapes=shapes, n_random=20 if seed else 5, seed=seed)
    assert report.checked["no exceptions"] > 50


def test_the_known_oracles_are_discovered() -> None:
    """The walk finds what is there (an empty walk would pass every test above)."""
    names = {kind.__name__ for kind in discovered()}
    assert {"ChainOracle", "MulticlassOracle", "AssignmentOracle"} <= names
