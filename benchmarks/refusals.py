"""Which trainer takes which oracle and surrogate: ``python benchmarks/refusals.py [--passes N] [--only ORACLE]``.

Every trainer over every structure, with margin rescaling, slack rescaling and the log loss, for some passes over four small
samples; each refusal is listed with its line and the number of its oracles. No run may crash or have a dual above its primal.
"""

import argparse
import warnings
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from measure import machine, table, verdict

from structpred.core.oracle import Oracle
from structpred.errors import StructpredError
from structpred.features.parts import PartFeatures
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import ExtraParts
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
from structpred.slack.surrogate import SlackRescaling
from structpred.task.task import Task
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.names import trainers
from structpred.trainers.problem import Problem


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


def task_of(oracle: Oracle) -> Task:
    """Four samples of the oracle's third example shape, or its last, with outputs that are best for random scores."""
    rng, shapes = np.random.default_rng(0), list(oracle.example_shapes())
    shape = shapes[min(2, len(shapes) - 1)]
    n = oracle.n_parts(shape)
    labels = [oracle.argmax(rng.normal(size=n), shape).copy() for _ in range(4)]
    return Task(PartFeatures([rng.normal(size=(n, 3)) for _ in labels]), oracle, labels, [shape] * 4, ExtraParts())


def main() -> None:
    """Print the refusals and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--only", choices=ORACLES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    refused: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    told: Counter[str] = Counter()
    faults = []
    for name in [options.only] if options.only else ORACLES:
        task = task_of(ORACLES[name]())
        for kind, surrogate in SURROGATES.items():
            for by, made in trainers().items():
                try:
                    problem = Problem(task, surrogate(), 0.1, regulariser=made.default_regulariser())
                    found = train(problem, made(), RunSettings(max_iter=options.passes)).certificate
                except StructpredError as error:
                    refused[kind, by, str(error).replace(type(task.oracle).__name__, "...").partition(". ")[0][:110]].append(name)
                    told["refused"] += 1
                    continue
                except Exception as error:
                    faults.append(f"{name}, {by}, {kind}: {error!r}")
                    continue
                certified = found is not None and found.dual is not None
                told["certified" if certified else "without a certificate"] += 1
                if certified and found.dual > found.primal + 1e-6 * (1.0 + abs(found.primal)):
                    faults.append(f"{name}, {by}, {kind}: dual {found.dual} above primal {found.primal}")
    print(f"\n{machine()}\n")
    print(table(["surrogate", "trainer", "line", "oracles"], [[*key, str(len(names))] for key, names in refused.items()]))
    print("\n" + ", ".join(f"{count} {what}" for what, count in told.items()))
    print(verdict("no crash, and no dual above a primal", not faults, "; ".join(faults[:5]) or f"{sum(told.values())} runs"))


if __name__ == "__main__":
    main()
