"""Everything that is looked up by name stands in a table, with what it promises; the few other names have a reason here."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from structpred.core import feature_map, oracle, regulariser
from structpred.task import steps
from structpred.trainers import problem

PACKAGE = Path(oracle.__file__).parents[1]
TABLES = {
    "oracles": oracle.OPTIONAL,
    "feature maps": feature_map.OPTIONAL,
    "regularisers": regulariser.OPTIONAL,
    "surrogates": problem.SURROGATE_OPTIONAL,
    "trainers": problem.TRAINER_OPTIONAL,
    "tasks": steps.TASK_CAPABILITIES,
}
LOOKED_UP = ("stand_in", "getattr", "hasattr", "offers")
#: names that belong to no protocol with a table: the reason, and the names
OTHERS = {
    "Python's, NumPy's and SciPy's own": (
        "buffer check_format columns compute dtype key ndim read reason shape size take tobytes toarray tocsr to_numpy where name"
    ),
    "what an operating system lacks": "O_BINARY O_NOFOLLOW O_NONBLOCK fchmod getuid sched_getaffinity",
    "what an estimator of scikit-learn's kind has": "fit fit_intercept get_params predict predict_proba warm_start n_jobs",
    "of packed sequences": "gather",
    "objects of other libraries": "BaseEstimator nodes feature has_annotation str2int lengths n_columns path",
    "what kinds of models and their inputs have, held by the classes of models": (
        "first function inner kernel offsets stages template templates"
    ),
    "obligatory, looked for to refuse what is not of the kind": "arrays costs dual_map exact tolerance",
    "of a loss of parts, in its protocol": "allowed_costs missed",
    "an attribute of a DualMap": "conic",
    "of a regulariser on a cone of signs: the one inside, and the signs": "of signs",
    "figures of an experiment": "cpu_seconds queries",
    "of a trainer that completes outputs: the one inside": "trainer",
    "of a state that keeps averages": "weights average",
    "of a state with the sweep that found its best weights": "sweep",
    "of a hierarchy of labels": "names",
    "methods of a state, which trainers/states.py describes": "fault in_doubt without_room",
    "of a task, or of its compiled steps, which task/steps.py describes": (
        "features oracle random_features compiled_updates capabilities squared_gradients expensive"
    ),
    "of numba's kernels, and of the interpreter that compiles them": "abiflags py_func",
    "working memory of our own": "programs scratch",
}
REASONS = {name: reason for reason, names in OTHERS.items() for name in names.split()}


def looked_up() -> Iterator[tuple[str, str]]:
    """(name, place) of each literal in stand_in(thing, "name"), getattr, hasattr, save private, special and fitted attributes."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or len(node.args) < 2 or not isinstance(node.args[1], ast.Constant):
                continue
            if getattr(node.func, "id", None) in LOOKED_UP:
                name = node.args[1].value
                if not (name.startswith("_") or name.endswith("_")):
                    yield name, f"{path.relative_to(PACKAGE)}:{node.lineno}"


def test_every_name_that_is_looked_up_stands_in_a_table() -> None:
    """A new optional call cannot be used before it has a promise, or a reason why it needs none."""
    known = {name for table in TABLES.values() for name in table} | set(REASONS)
    found = dict(looked_up())
    assert len(found) > 70
    assert not {name: place for name, place in found.items() if name not in known}
    assert not set(REASONS) - set(found)


@pytest.mark.parametrize("kind", TABLES)
def test_every_promise_is_one_line_of_text(kind: str) -> None:
    """Each name is an identifier, and each promise says something on one line."""
    for name, promise in TABLES[kind].items():
        assert name.isidentifier()
        assert len(promise) > 20
        assert "\n" not in promise


def test_what_cocoa_asks_of_a_trainer_is_in_the_table() -> None:
    """What it calls on the trainer of a shard is a method of all trainers, or has a promise."""
    tree = ast.parse((PACKAGE / "trainers" / "cocoa.py").read_text(encoding="utf-8"))
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    asked = {one.attr for one in called if ast.unparse(one.value) in ("solver", "self.trainer")}
    assert {"local_problem", "begin", "own_sum", "dual_part", "mixed"} <= asked
    assert {name for name in asked if not hasattr(problem.Trainer, name)} <= set(TABLES["trainers"])
