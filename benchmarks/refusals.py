"""Which trainer takes what: ``python benchmarks/refusals.py [--passes N] [--runs FILE] [--only NAME]``.

Every trainer over every structure, with margin rescaling, slack rescaling and the log loss, on four small samples; then every
trainer over every regulariser, with and without signs; then the log loss over all oracles that list their outputs. No run may
crash, give a number that is not finite, or have a dual above its primal. `--runs` keeps each run in a file, a line each: what is
there is not run again. A whole run writes `benchmarks/results/refusals.md`.
"""

import argparse
import itertools
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import HERE, machine, table, verdict
from scipy import sparse

from structpred.core.oracle import Oracle
from structpred.core.regulariser import Regulariser
from structpred.data.sequences import PackedSequences
from structpred.errors import StructpredError
from structpred.features.parts import PartFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.models.fields.label_field import LabelField
from structpred.models.fields.label_graphs import label_oracle
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.names import regularisers
from structpred.objectives.part_losses import ExtraParts, Hamming
from structpred.objectives.regularisers.l2 import FreeIntercept
from structpred.objectives.regularisers.named_groups import GroupTree, OverlappingGroups
from structpred.objectives.regularisers.signed import signed
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.branch_and_bound import BranchAndBoundMRF
from structpred.oracles.chain import ChainOracle
from structpred.oracles.dual_mrf import DualMRF
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.knapsack import KnapsackOracle
from structpred.oracles.leaf_sets import LeafSets
from structpred.oracles.mrf_lp import RelaxedMRF
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.oracles.qpbo import QPBO
from structpred.oracles.ranking import RankingOracle
from structpred.oracles.semimarkov import SemiMarkovOracle
from structpred.oracles.shortest_path import ShortestPathOracle
from structpred.oracles.travelling_salesman import TravellingSalesmanOracle
from structpred.oracles.tree_mrf import TreeMRF
from structpred.rows.linear_task import LinearTask
from structpred.slack.surrogate import SlackRescaling
from structpred.task.task import Task
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.names import trainers
from structpred.trainers.problem import Problem

PAGE = HERE / "results" / "refusals.md"


class Pairs(Oracle):
    """Two different things out of some: three methods, as a user writes them."""

    def n_parts(self, shape: Any) -> int:
        """A part a thing."""
        return int(shape[0])

    def argmax(self, scores: Any, shape: Any) -> Any:
        """The two best."""
        return np.sort(np.argsort(-scores, kind="stable")[:2]).astype(np.int64)

    def parts(self, labels: Any, shape: Any) -> Any:
        """The things themselves."""
        return labels

    @staticmethod
    def example_shapes() -> list[Any]:
        """Four and five things."""
        return [(4,), (5,)]


ORACLES: dict[str, Any] = {
    "own": Pairs, "multiclass": MulticlassOracle, "chain": ChainOracle, "semi-Markov": SemiMarkovOracle,
    "arborescence": ArborescenceOracle, "projective": ProjectiveOracle, "tree": TreeMRF,
    "enumerated": lambda: EnumeratedOracle.of(AssignmentOracle()), "branch and bound": BranchAndBoundMRF, "QPBO": QPBO,
    "LP": RelaxedMRF, "dual": DualMRF, "assignment": AssignmentOracle, "leaf sets": LeafSets, "knapsack": KnapsackOracle,
    "paths": ShortestPathOracle, "ranking": RankingOracle, "tours": TravellingSalesmanOracle,
}  # fmt: skip
SURROGATES: dict[str, Any] = {"margin": MarginRescaling, "slack": SlackRescaling, "log": LogLoss}
#: what a refusal is put down to
REASONS = {
    "no structures": "`sdca`, `pegasos`, `pragam_b` are for rows, `marginal_bcfw` is for label sets",
    "no marginals": "the log loss and `oeg` need sums over all outputs; `EnumeratedOracle.of(oracle)` lists them, up to 262,144",
    "hinge": "`lbfgs` and `owlqn` need a continuous gradient, which a hinge has not",
    "slack": "the dual of slack rescaling does not split over parts: `pragam`, `projected_ascent`, `oeg`",
    "log loss": "the log loss has no linear pieces, which `bcfw`, `corrective`, `n_slack`, `one_slack`, `pragam`, "
    "`projected_ascent` are made of, and no mistakes, which `arow`, `mira`, `pa`, `perceptron` learn from",
    "squared norm": "`projected_ascent`, `marginal_bcfw` and those that learn from mistakes have steps for 1/2 |w|^2 alone",
    "dual map": "under the lasso, a ball or free weights w is no function of the dual point: online trainers take them",
    "gradient": "`lbfgs` needs a smooth regulariser; `owlqn` takes signs and an l1 term",
    "smooth_part": "`owlqn` needs a regulariser that is smooth but for signs and an l1 term",
    "free": "`pragam_b` is for an intercept that is not regularised, and for nothing else",
    "scales": "`sdca` and `oeg` know no scales that move between passes; `sgd` and `pegasos` keep one scale for all weights",
}


def reason(error: StructpredError, surrogate: str) -> str:
    """Which of REASONS it is, or its beginning."""
    text = str(error)
    first = text.split(", ")[0]
    if "alone, not for" in text:
        return "no structures"
    if first.startswith("regulariser: ") and "cannot minimise" in first:
        return "scales"
    if first.startswith("surrogate: ") and "cannot minimise" in first:
        quasi_newton = first.split()[1] in ("LBFGS", "OWLQN")
        return "log loss" if surrogate == "log" else "hinge" if quasi_newton else surrogate
    needs = {
        "marginals": "no marginals",
        "squared_norm": "squared norm",
        "squared_norm or dual_map": "dual map",
        "dual_map": "dual map",
    }
    need = first.partition(" needs ")[2]
    return needs.get(need, need if need in REASONS else first[:80])


def task_of(oracle: Oracle) -> Task:
    """Four samples of the oracle's third example shape, or its last, with outputs that are best for random scores."""
    rng, shapes = np.random.default_rng(0), list(oracle.example_shapes())
    shape = shapes[min(2, len(shapes) - 1)]
    n = oracle.n_parts(shape)
    labels = [oracle.argmax(rng.normal(size=n), shape).copy() for _ in range(4)]
    return Task(PartFeatures([rng.normal(size=(n, 3)) for _ in labels]), oracle, labels, [shape] * 4, ExtraParts())


def tasks_in_groups() -> dict[str, Any]:
    """A chain, rows, and label sets, whose weights are in groups."""
    rng = np.random.default_rng(0)
    data = PackedSequences(np.arange(0, 25, 2), rng.integers(0, 5, 24).astype(np.int32), rng.normal(size=24).astype(np.float32),
                           np.array([0, 3, 6, 9, 12]), 5)  # fmt: skip
    labels = [rng.integers(0, 3, 3) for _ in range(4)]
    chain = Task(SequenceFeatures(data, 3), ChainOracle(), labels, [(3, 3)] * 4, Hamming())
    X, edges = rng.normal(size=(12, 3)), np.array([[0, 2], [1, 2]])
    asked = LabelField(3, list("abc"), edges, 1.0, label_oracle(3, edges)).inference(sparse.csr_array(X))
    sets = Task(asked.features, asked.oracle, list(rng.integers(0, 2, (12, 3))), asked.shapes, Hamming())
    return {"chain": chain, "rows": LinearTask(X, np.where(rng.random(12) < 0.5, 1, -1), intercept=1.0), "label sets": sets}


def regularisers_of(task: Any) -> dict[str, Callable[[], Regulariser]]:
    """Each with a name, and those that are given names of groups."""
    every = ["*", *task.group_names]
    named = {"overlaps": partial(OverlappingGroups, every), "group tree": partial(GroupTree, every)}
    return {**regularisers(), "free intercept": FreeIntercept, **named}


def outcome(made: Callable[[], Problem], trainer: Any, passes: int, surrogate: str) -> dict[str, Any]:
    """What became of a run: {"how": ..., "line": ..., "seconds": ...}."""
    start = time.process_time()
    try:
        found = train(made(), trainer(), RunSettings(max_iter=passes)).certificate
        how, line = ("without a certificate", "") if found is None or found.dual is None else ("certified", "")
        values = [] if found is None else [x for x in (found.primal, found.dual) if x is not None]
        if not np.isfinite(values).all():
            how, line = "fault", f"not finite: {values}"
        elif how == "certified" and found is not None and found.dual > found.primal + 1e-6 * (1.0 + abs(found.primal)):
            how, line = "fault", f"dual {found.dual} above primal {found.primal}"
    except StructpredError as error:
        how, line = "refused", reason(error, surrogate)
    except Exception as error:
        how, line = "fault", repr(error)
    return {"how": how, "line": line, "seconds": time.process_time() - start}


def runs() -> Iterator[tuple[tuple[str, str, str], Callable[[], Problem], Any, str]]:
    """(what is run, its problem, the trainer, the surrogate)."""
    for name, oracle in ORACLES.items():
        task = task_of(oracle())
        for (kind, surrogate), (by, made) in itertools.product(SURROGATES.items(), trainers().items()):
            yield (name, kind, by), partial(Problem, task, surrogate(), 0.1, regulariser=made.default_regulariser()), made, kind
        if hasattr(task.oracle, "enumerate"):
            listed = Task(task.features, EnumeratedOracle.of(task.oracle), task.labels, task.shapes, ExtraParts())
            yield (name, "log, listed", "lbfgs"), partial(Problem, listed, LogLoss(), 0.1), trainers()["lbfgs"], "log"
    tasks = tasks_in_groups()
    for by, made in trainers().items():
        needs = str(made.requires)
        task = tasks["label sets" if "label_sets" in needs else "rows" if "rows" in needs and "project" not in needs else "chain"]
        signs = np.random.default_rng(1).integers(-1, 2, task.dim)
        for name, r in regularisers_of(task).items():
            for how, regulariser in (("free", r()), ("signs", signed(r(), signs))):
                problem = partial(Problem, task, made.surrogates[0](), 0.1, regulariser=regulariser)
                yield (f"{name} regulariser", how, by), problem, made, ""


def shown(found: dict[tuple[str, str, str], dict[str, Any]]) -> str:
    """The page: an oracle a row, a regulariser a row, the reasons, and what failed."""

    def rows(of: Callable[[tuple[str, str, str]], str]) -> str:
        lines = list(dict.fromkeys(one["line"] for key, one in found.items() if of(key) and one["how"] == "refused"))
        lines = [*(x for x in REASONS if x in lines), *(x for x in lines if x not in REASONS)]
        counts = {name: Counter[str]() for name in dict.fromkeys(of(key) for key in found if of(key))}
        for key, one in found.items():
            if of(key):
                counts[of(key)].update([one["how"], *([one["line"]] if one["how"] == "refused" else [])])
        total = sum(counts.values(), Counter())
        heads = ["certified", "without a certificate", "refused"]
        body = [[name, *(c[head] for head in [*heads, *lines])] for name, c in {**counts, "all": total}.items()]
        return table(["", *heads, *lines], body)

    first = sum(key[1] in SURROGATES for key in found)
    third = [one["how"] for key, one in found.items() if key[1] == "log, listed"]
    second, spent = len(found) - first - len(third), sum(one["seconds"] for one in found.values())
    faults = [f"{', '.join(key)}: {one['line']}" for key, one in found.items() if one["how"] == "fault"]
    return "\n".join([
        "# What trainers refuse\n",
        f"`python benchmarks/refusals.py`; {machine()}; {spent:.0f} CPU s, kernels compiled\n",
        f"## {first:,} runs: every trainer, oracle and surrogate\n", rows(lambda key: key[0] if key[1] in SURROGATES else ""),
        f"\n## {second:,} runs: every trainer and regulariser, with and without signs\n",
        rows(lambda key: f"{key[0][:-12]}{', signs' * (key[1] == 'signs')}" if key[0].endswith(" regulariser") else ""),
        "\n## Why\n", *(f"- {name}: {why}." for name, why in REASONS.items()), "\n## Verdicts\n",
        verdict("no crash, all finite, no dual above a primal", not faults, "; ".join(faults[:9]) or f"{len(found):,} runs"),
        verdict("the log loss trains where outputs can be listed", set(third) == {"certified"}, f"{len(third)} oracles"),
    ])  # fmt: skip


def main() -> None:
    """Run what is not in the file of runs; write the page, or print it where not all was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--runs", type=Path, metavar="FILE", help="keep each run here, and go on from what is there")
    parser.add_argument("--only", metavar="NAME", help="an oracle, or 'l1 regulariser'")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kept = options.runs.read_text().splitlines() if options.runs and options.runs.exists() else []
    done = {tuple(key): one for key, one in map(json.loads, kept)}
    found = {}
    for key, problem, trainer, surrogate in runs():
        if options.only in (None, key[0]):
            if key not in done:
                done[key] = outcome(problem, trainer, options.passes, surrogate)
                if options.runs:
                    with options.runs.open("a") as file:
                        file.write(json.dumps([key, done[key]]) + "\n")
            found[key] = done[key]
    print(page := shown(found))
    if options.only is None:
        PAGE.write_text(page + "\n")


if __name__ == "__main__":
    main()
