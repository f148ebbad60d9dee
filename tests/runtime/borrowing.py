"""Whether kernels that are marked as borrowers of their arrays are: asked of the types that numba finds while it compiles them.

    python tests/runtime/borrowing.py

runs small trainings without any kept kernel and writes, as JSON, the marked kernels that were compiled, and whether each makes
no array and returns none. A wrong mark would be a use after free, or memory that is never given back.
"""

import importlib
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import ir, typed_passes, types
from numba.core.dispatcher import Dispatcher

from structpred.runtime.kernel_files import PACKAGE

#: expressions that make no array: their value is a part of what they are given, or a view of it
VIEWS = ("getitem", "static_getitem", "getattr", "exhaust_iter", "iternext", "pair_first", "build_tuple", "cast", "phi")
#: what can only be there because the kernel made it
MADE = (types.List, types.ListType, types.Set, types.DictType, types.UnicodeType, types.Generator)


def borrows(function: Any, kinds: Any, returned: Any) -> bool:
    """Whether a kernel makes no array and returns none. kinds: the types of its variables; returned: that of its value."""
    if counted(returned) or any(isinstance(kind, MADE) for kind in kinds.values()):
        return False
    for block in function.blocks.values():
        stored = [*block.find_insts(ir.SetItem), *block.find_insts(ir.StaticSetItem)]
        if any(counted(kinds[step.value.name]) for step in stored):  # numba copies arrays by code that counts
            return False
        for step in block.find_insts(ir.Assign):
            expr = step.value
            if not isinstance(expr, ir.Expr) or not counted(kinds[step.target.name]):
                continue
            if expr.op not in VIEWS or (expr.op == "getitem" and counted(kinds[expr.index.name])):
                return False
    return True


def counted(kind: Any) -> bool:
    """Whether a value of this type holds arrays."""
    if isinstance(kind, types.BaseTuple):
        return any(counted(one) for one in kind)
    return isinstance(kind, types.Array) or (isinstance(kind, types.Optional) and counted(kind.type))


@contextmanager
def watching(marked_only: bool = True) -> Iterator[dict[str, bool]]:
    """Name of each kernel that is compiled, or of each marked one of the package, and whether it borrows with all its types."""
    found: dict[str, bool] = {}
    lower = typed_passes.NativeLowering.run_pass

    def watched(step: Any, state: Any) -> bool:
        known = state.func_id.modname.startswith("structpred.")  # numba's own functions count as those that call them
        if not marked_only or (known and not state.flags.nrt):
            name = name_of(state.func_id.func)
            found[name] = found.get(name, True) and borrows(state.func_ir, state.typemap, state.return_type)
        return bool(lower(step, state))

    typed_passes.NativeLowering.run_pass = watched
    try:
        yield found
    finally:
        typed_passes.NativeLowering.run_pass = lower


def name_of(function: Any) -> str:
    """As in messages; bodies of a family have the name of the module that asked for them."""
    return str(function.__qualname__ if "." in function.__qualname__ else f"{function.__module__}.{function.__name__}")


def marked() -> set[str]:
    """The kernels of the package that are marked."""
    found = set()
    for file in PACKAGE.rglob("*_kernels.py"):
        module = importlib.import_module(".".join(("structpred", *file.relative_to(PACKAGE).with_suffix("").parts)))
        kernels = [each for each in vars(module).values() if isinstance(each, Dispatcher)]
        found |= {name_of(each.py_func) for each in kernels if each.targetoptions.get("_nrt") is False}
    return found


def trainings() -> None:
    """Small trainings and predictions that call every marked kernel."""
    import numpy as np

    from structpred.features.positions import PositionFeatures
    from structpred.models import ChainLabeler, DependencyParser, GraphLabeler, MultiLabelMRF
    from structpred.objectives.margin import MarginRescaling
    from structpred.objectives.part_losses import Hamming
    from structpred.oracles.chain import ChainOracle
    from structpred.task.task import Task
    from structpred.trainers.loop import RunSettings, train
    from structpred.trainers.problem import Problem
    from structpred.trainers.sgd import SGD

    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(4, 3)) for _ in range(4)], [["a", "b", "a", "c"]] * 4
    named = [[["w=the"], ["w=dog"], ["w=sees", "bias"], ["w=it"]]] * 4
    for trainer in ("sgd", "bcfw", "mira", "arow", "oeg", "lbfgs"):
        ChainLabeler(trainer, max_iter=2).fit(named, y).predict(named)
    ChainLabeler("sgd", max_iter=2).fit(X, y)
    words = [[{"form": "the"}, {"form": "dog"}, {"form": "sees"}, {"form": "it"}]] * 4
    trees = [[(2, "det"), (3, "nsubj"), (0, "root"), (3, "obj")]] * 4
    for trainer, projective in (("mira", False), ("bcfw", True), ("oeg", True), ("oeg", False)):
        DependencyParser(trainer, max_iter=2, projective=projective).fit(words, trees).predict(words)
    DependencyParser("mira", max_iter=2, order=2).fit(words, trees).predict(words)
    graphs = [(rows, np.array([(0, 1), (1, 2), (2, 3), (3, 0)])) for rows in X]
    sets = rng.integers(0, 2, size=(4, 3))
    GraphLabeler("sgd", max_iter=2).fit(graphs, y).predict(graphs)
    MultiLabelMRF("bcfw", max_iter=2).fit(np.stack([rows[0] for rows in X]), sets)
    ends, grams = np.arange(0, 17, 4), [np.eye(16, dtype=np.float32)]
    functions = PositionFeatures(grams, ends, 3, ["kernel"])
    task = Task(functions, ChainOracle(), [np.arange(4) % 3] * 4, [(4, 3)] * 4, Hamming())
    train(Problem(task, MarginRescaling(), 1.0), SGD(), RunSettings(max_iter=2))
    padded_batches()


def padded_batches() -> None:
    """Sums and decoding of padded batches, whose caller needs torch."""
    import numpy as np

    from structpred.oracles.chain import best_scratch, sum_scratch
    from structpred.oracles.chains import _padded_chain_kernels as kernels

    given = np.zeros((2, 4, 3)), np.zeros((4, 4)), np.ones((2, 4), np.bool_), np.zeros((2, 4), np.int64)
    found = np.zeros(2), np.zeros((2, 4, 3)), np.zeros((2, 4, 4))
    kernels.sums(*given, sum_scratch(3, 4).rows, np.zeros((2, 4), np.int64), *found)
    kernels.decode(*given, best_scratch(3, 4, 4), np.zeros((2, 4), np.int64))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with watching() as compiled:
        trainings()
    print(json.dumps({"compiled": compiled, "marked": sorted(marked())}))
