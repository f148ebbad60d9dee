"""Old paths of modules that moved into rooms."""

import importlib
import sys
from pathlib import Path

import pytest

import structpred.core
import structpred.objectives.regularisers
import structpred.objectives.scalar
import structpred.projections
import structpred.trainers
from structpred.runtime.moved import leave_behind, present_name
from structpred.trainers.mira import MIRA

MOVED = sorted(
    name for name, module in sys.modules.items() if name.startswith("structpred.") and type(module).__name__ == "_Moved"
)


def test_old_paths_are_known() -> None:
    """Those of public modules, none of which hides a file that is there."""
    some = {"core.task", "core.scalar_loss", "trainers.bundles"}
    merged = {"projections.l1_ball", "objectives.regularisers.lasso"}  # these have another name where they are now
    assert {f"structpred.{name}" for name in some | merged} <= set(MOVED)
    root = Path(structpred.__file__).parent.parent
    assert [name for name in MOVED if (root / f"{name.replace('.', '/')}.py").exists()] == []


@pytest.mark.parametrize("name", MOVED)
def test_an_old_path_leads_to_the_new_one(name: str) -> None:
    """What the new module defines can be had there, with a DeprecationWarning that names the new path."""
    new = importlib.import_module(sys.modules[name].__doc__.removeprefix("Moved to ").removesuffix("."))
    own = [key for key, one in vars(new).items() if getattr(one, "__module__", None) == new.__name__ and not key.startswith("_")]
    assert own
    for key in own:
        with pytest.warns(DeprecationWarning, match=f"{name} has moved: import {key} from {new.__name__}"):
            assert getattr(importlib.import_module(name), key) is getattr(new, key)


def test_a_name_that_is_not_there_is_an_import_error() -> None:
    """As of any module."""
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        from structpred.core.task import Nothing  # noqa: F401
    with pytest.raises(AttributeError, match="has no attribute '__all__'"):
        _ = sys.modules["structpred.core.task"].__all__


def test_a_module_that_is_there_is_left_alone() -> None:
    """An old path never stands in front of a module that was imported."""
    before = sys.modules["structpred.core.costs"]
    leave_behind("structpred.core", {"structpred.task": ("costs",)})
    assert sys.modules["structpred.core.costs"] is before


@pytest.mark.parametrize(("old", "new"), [("PartLoss", "Cost"), ("InstanceLosses", "InstanceCosts")])
def test_an_old_name_leads_to_the_new_one(old: str, new: str) -> None:
    """The protocols of part losses by their earlier names."""
    from structpred.core import costs

    with pytest.warns(DeprecationWarning, match=f"{old} is called {new} now"):
        assert getattr(costs, old) is getattr(costs, new)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = costs.Nothing


def test_an_optional_method_is_found_by_its_old_name() -> None:
    """With a DeprecationWarning that names the new one, where only the old one is there."""

    class Older:
        def moves(self) -> None:
            """By the old name."""

    assert present_name(MIRA(), "update_rule", "moves") == present_name(object(), "update_rule", "moves") == "update_rule"
    with pytest.warns(DeprecationWarning, match=r"Older\.moves is called update_rule now"):
        assert present_name(Older(), "update_rule", "moves") == "moves"


def test_the_old_name_of_the_update_rule_leads_to_the_new_one() -> None:
    """Of a class that is imported from a path that has changed, too."""
    from structpred.task.fast.update_rules import UpdateRule

    with pytest.warns(DeprecationWarning, match="Moves is called UpdateRule now|core.moves has moved"):
        assert sys.modules["structpred.core.moves"].Moves is UpdateRule
