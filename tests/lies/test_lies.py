"""Lies planted in every kind of component that a user writes: none may end in a proof that is false."""

from importlib import import_module
from pathlib import Path

import pytest
from lies_runs import CONTROLS, PLANTS, Plant

pytest.importorskip("cvxpy")
for _file in sorted(Path(__file__).parent.glob("lies_of_*.py")):
    import_module(_file.stem)  # enters its plants

#: plants that are believed, each with the reason why nobody can know
BELIEVED = {
    "NeverTwoUnlisted": "the oracle lists nothing, and no true output has two items: what it never finds might not exist",
}
#: a fast one of each family, with one trainer
FEW = {
    "Minimises": "bcfw", "NeverTwoOfSingles": "n_slack", "AcceptsThree": "one_slack", "BoundIsNaN": "bcfw",
    "LogZTooLarge (log)": "lbfgs", "ProductIsArgmax (slack)": "n_slack", "AdjointDoubledForOne": "n_slack",
    "BlockScoresTripled": "bcfw", "Similarity": "bcfw", "ProudBound": "bcfw", "ReturnsZero": "n_slack", "ValuesHalved": "bcfw",
    "SparseMAPHalved (sparsemap)": "lbfgs", "TableWrongBeyond200": "sdca", "CallbackMinimises": "bcfw",
    "DecidesForOne": "n_slack",
}  # fmt: skip


def families() -> dict[str, int]:
    """How many plants of each family there are."""
    found: dict[str, int] = {}
    for one in PLANTS:
        found[one.family] = found.get(one.family, 0) + 1
    return found


def cases(plants: list[Plant]) -> list[object]:
    """As parameters; those on workers need dask."""
    return [pytest.param(one, id=f"{one.family}: {one.name}") for one in plants]


def ends(one: Plant, *trainers: str) -> dict[str, str]:
    """How the run under each trainer ended."""
    if one.family == "on workers":
        pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
    return {name: f"{found.end}: {found.said}" for name in trainers or one.trainers for found in (one.run(name),)}


def test_there_are_plants_of_all_kinds() -> None:
    """At least 120 lies in eleven families, each with a sentence that says it, and at most three that are believed."""
    assert len(PLANTS) >= 120
    assert len({one.name for one in PLANTS}) == len(PLANTS)
    assert all(one.says and one.trainers for one in PLANTS)
    assert set(BELIEVED) <= {one.name for one in PLANTS}
    assert len(BELIEVED) <= 3
    assert len(families()) == 11


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("name", "trainer"), FEW.items())
def test_a_lie_of_each_family_is_not_proven(name: str, trainer: str) -> None:
    """One plant and one trainer: the run is named, or proves nothing, or what it proves is true."""
    (one,) = (one for one in PLANTS if one.name == name)
    assert not [said for said in ends(one, trainer).values() if said.startswith("false")]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("one", cases([one for one in CONTROLS if one.name.startswith("Right") and one.family != "on workers"]))
def test_a_right_component_is_believed(one: Plant) -> None:
    """No guard names a right component of a user's own, and its proof is true, under the first of its trainers."""
    assert [said for said in ends(one, one.trainers[0]).values() if not said.startswith("proof")] == []


@pytest.mark.slow
@pytest.mark.parametrize("one", cases(PLANTS))
def test_no_lie_is_proven(one: Plant) -> None:
    """Under none of its trainers does a lie end in a false proof; those that are believed have a reason, and still are."""
    false = {name: said for name, said in ends(one).items() if said.startswith("false")}
    assert bool(false) == (one.name in BELIEVED), false


@pytest.mark.slow
@pytest.mark.parametrize("one", cases(CONTROLS))
def test_no_right_component_is_named(one: Plant) -> None:
    """Every right component of a user's own trains under all of its trainers, and what is proven is true."""
    assert {name: said for name, said in ends(one).items() if not said.startswith("proof")} == {}
