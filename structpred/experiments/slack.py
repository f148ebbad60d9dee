"""The experiments of the slack-rescaling paper (Choi, Meshi & Srebro 2016, section 5) on public data."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from structpred.experiments import slack_comparisons as comparisons
from structpred.experiments.experiment import PRINTED, Claim, Experiment, Wanted, data_file
from structpred.io.multilabel.data import MultiLabelData
from structpred.io.multilabel.mulan import read_clus, read_mulan
from structpred.models.fields.multilabel import HierarchicalMultiLabel, MultiLabelMRF
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.mrf_lp import RelaxedMRF
from structpred.oracles.qpbo import QPBO

log = logging.getLogger("structpred.experiments")

METHODS = ("angular", "bisecting", "sarawagi", "hull", "binary")
#: the data of the searches -> those of the paper that they are compared with
SEARCHED = {"yeast": "yeast", "enron": "RCV1"}
N_LABELS = 14
#: the paper's Table 1: success %, queries per search, milliseconds per search
PAPER_SEARCHES = {
    "yeast": {"angular": (22.4, 3.8, 4.7), "bisecting": (16.5, 10.3, 3.6), "sarawagi": (16.4, 43.2, 18.5)},
    "RCV1": {"angular": (25.6, 4.8, 4.4), "bisecting": (18.2, 12.7, 5.2), "sarawagi": (18.0, 49.0, 20.9)},
}
#: the data of the scores -> those of the paper that they are compared with
SCORED = {"yeast": "yeast", "enron": "RCV1", "tmc2007-500": "RCV1"}
#: the paper's Table 2: accuracy, label loss, micro F1, "macro F1"
PAPER_SCORES = {
    "yeast": {"slack": (0.54, 0.205, 0.661, 0.651), "margin": (0.545, 0.204, 0.666, 0.654)},
    "RCV1": {"slack": (0.676, 0.023, 0.755, 0.747), "margin": (0.662, 0.023, 0.753, 0.742)},
}
#: its table of hierarchical classification (SWIKI-2011), the same columns
PAPER_HIERARCHY = {"slack": (0.3798, 0.0105, 0.3917, 0.3880), "margin": (0.3327, 0.0110, 0.3394, 0.3378)}
#: how many times more bisecting and Sarawagi's search need than angular search, as its section 5.1 says of RCV1
PAPER_FACTORS = (("with fewer queries", "queries", (2.6, 10.1)), ("and faster", "milliseconds", (1.18, 4.7)))
#: what it says of accuracy: the claim, its data, the surrogate ahead and the other one
PAPER_ORDERS = (
    ("Table 2, yeast: margin ahead, accuracy", "yeast", "margin", "slack"),
    ("RCV1: slack ahead", "RCV1", "slack", "margin"),
    ("Table 3, hierarchy: slack ahead", "SWIKI-2011", "slack", "margin"),
)


@dataclass(frozen=True)
class Plan:
    """How much is run.

    samples, rounds: of the searches, at most; the relaxed ones are expensive. lam: their regulariser. most: examples of each data
    set. passes: of each training, up to a gap of tol. grid: values of C; folds: of the cross-validation. converging: samples of
    the convergence, its passes of n_slack and of SGD.
    """

    samples: int
    rounds: int
    relaxed_samples: int
    relaxed_rounds: int
    most: int
    passes: int
    folds: int
    grid: tuple[float, ...]
    hierarchy_grid: tuple[float, ...]
    converging: tuple[int, int, int]
    lam: float = 5.0
    tol: float = 0.01


GRID = (0.003, 0.01, 0.03, 0.1, 0.3)
#: as in the documentation, and a few seconds
FULL = Plan(160, 100, 40, 30, 1500, 60, 3, (*GRID, 1.0), GRID, (40, 40, 60))
QUICK = Plan(20, 8, 6, 4, 120, 4, 2, (0.01, 0.1), (0.01, 0.1), (12, 8, 4))


@dataclass(frozen=True)
class SearchTable:
    """One comparison of searches. beside: the paper's data set."""

    data: str
    relaxed: bool
    samples: int
    rounds: int
    C: float
    beside: str
    rows: Sequence[comparisons.SearchRow]


@dataclass(frozen=True)
class ScoreTable:
    """Margin and slack rescaling on one data set; n_train, n_test: examples. beside: the paper's data. tol: the gap aimed at."""

    data: str
    n_train: int
    n_test: int
    beside: str
    tol: float
    rows: Sequence[comparisons.ScoreRow]


@dataclass(frozen=True)
class Tables:
    """All that was run; cpu_seconds: of this process."""

    searches: Sequence[SearchTable]
    convergence: comparisons.Convergence | None
    scores: Sequence[ScoreTable]
    hierarchy: ScoreTable | None
    cpu_seconds: float = 0.0


class SlackRescalingTables(Experiment):
    """Compare slack rescaling with margin rescaling, and the ways to search for what it needs (Choi, Meshi & Srebro 2016).

    \b
    searches     how often, and with how many queries, each search finds a violated label: yeast, enron
    convergence  objective and accuracy by trainer and search against queries and time: yeast
    scores       multi-label classification on yeast, enron and tmc2007, C by cross-validation on the training set
    hierarchy    the same along a tree of topics: Enron-corr

    --picture draws the convergence.
    """

    name = "slack"
    summary = "Slack rescaling: searches, scores, hierarchies."
    tables = ("searches", "convergence", "scores", "hierarchy")
    draws: ClassVar = True
    switches: ClassVar = {"relaxed": "The searches over the linear programming relaxation, too (needs OR-Tools)."}

    def run(self, folder: Path, wanted: Wanted) -> Tables:
        """The tables, None or empty where they are not wanted."""
        plan = QUICK if wanted.quick else FULL
        names = wanted.chosen(self.tables)
        kinds = (False, True) if "relaxed" in wanted.switches else (False,)
        searched = [*product(kinds, SEARCHED)] if "searches" in names else []
        scored = SCORED if "scores" in names else ()
        return Tables(
            [
                wanted.kept(f"searches-{one}-{kind}", SearchTable, partial(_searches, folder, plan, one, kind))
                for kind, one in searched
            ],
            wanted.table("convergence", comparisons.Convergence, partial(_convergence, folder, plan)),
            [wanted.kept(f"scores-{one}", ScoreTable, partial(_scores, folder, plan, one)) for one in scored],
            wanted.table("hierarchy", ScoreTable, partial(_hierarchy, folder, plan)),
        )

    def text(self, figures: Tables) -> str:
        """The tables for people, the paper's figures on the right."""
        parts = ["\n".join(_search_lines(table)) for table in figures.searches]
        if figures.convergence is not None:
            parts.append("\n".join(comparisons.convergence_lines(figures.convergence)))
        for one in figures.scores:
            parts.append("\n".join(_score_lines("Multi-label classification", one, PAPER_SCORES[one.beside])))
        if figures.hierarchy is not None:
            parts.append("\n".join(_score_lines("Classification along a tree of labels", figures.hierarchy, PAPER_HIERARCHY)))
        parts.append(f"{figures.cpu_seconds:.0f} CPU seconds")
        return "\n\n".join(parts)

    def claims(self, figures: Tables) -> list[Claim]:
        """What section 5 says of these tables."""
        found = _search_claims({one.data: {row.method: row for row in one.rows} for one in figures.searches if not one.relaxed})
        for claim, beside, *order in PAPER_ORDERS:
            tables = [one for one in (*figures.scores, figures.hierarchy) if one is not None and one.beside == beside]
            pairs = [[row for name in order for row in one.rows if row.surrogate == name] for one in tables]
            words = [
                f"{one.data} {a.accuracy:.3f}, {b.accuracy:.3f} (gaps {100 * (a.gap or 0.0):.2g}, {100 * (b.gap or 0.0):.2g} %)"
                for one, (a, b) in zip(tables, pairs, strict=True)
            ]
            printed = ", ".join(f"{PAPER_SCORES.get(beside, PAPER_HIERARCHY)[name][0]:.3f}" for name in order)
            if pairs:
                found.append((claim, printed, "; ".join(words), all(a.accuracy > b.accuracy for a, b in pairs)))
        found += comparisons.convergence_claims(figures.convergence) if figures.convergence else []
        return [Claim("Choi, Meshi, Srebro 2016", *one) for one in found]


def _search_claims(tables: Mapping[str, Mapping[str, comparisons.SearchRow]]) -> list[tuple[str, str, str, bool]]:
    """Of Table 1, whose factors are to be reached on every data set."""
    found, others = [], METHODS[1:3]
    shares = {data: [100 * rows[method].success for method in METHODS[:3]] for data, rows in tables.items()}
    words = "; ".join(f"{data} " + ", ".join(f"{share:.1f}" for share in one) for data, one in shares.items())
    met = all(first > max(rest) for first, *rest in shares.values())
    found.append(("Table 1: angular search succeeds most", "22.4, 16.5, 16.4 %", f"{words} %", met))
    for claim, field, (a, b) in PAPER_FACTORS:
        ours = {k: [getattr(rows[m], field) / getattr(rows["angular"], field) for m in others] for k, rows in tables.items()}
        words = "; ".join(f"{data} {first:.2f}, {second:.2f}" for data, (first, second) in ours.items())
        found.append((claim, f"{a}, {b} times", f"{words} times", all(one[0] >= a and one[1] >= b for one in ours.values())))
    return found if tables else []


def _searches(folder: Path, plan: Plan, name: str, relaxed: bool) -> SearchTable:
    data = comparisons.most_frequent_labels(_mulan(folder, name, "train"), N_LABELS)
    n, rounds = (plan.relaxed_samples, plan.relaxed_rounds) if relaxed else (plan.samples, plan.rounds)
    some = _part(data, n)
    log.info("searches on %s, %s: %d samples, %d rounds", name, "relaxed" if relaxed else "whole labels", len(some), rounds)
    tasks = dict.fromkeys(METHODS, comparisons.multilabel_task(some, QPBO() if relaxed else EnumerationMRF()))
    if relaxed:  # what angular search asks is a linear program; plain queries are a cut in a graph
        tasks["angular"] = comparisons.multilabel_task(some, RelaxedMRF())
    rows = comparisons.compare_searches(tasks, plan.lam, rounds=rounds, relaxed=relaxed)
    return SearchTable(name, relaxed, len(some), rounds, 1.0 / (plan.lam * len(some)), SEARCHED[name], rows)


def _convergence(folder: Path, plan: Plan) -> comparisons.Convergence:
    samples, planes, sgd = plan.converging
    train, test = (_part(_mulan(folder, "yeast", part), plan.most) for part in ("train", "test"))
    return comparisons.converge("yeast", _part(train, samples), test, 1.0, {"n_slack": planes, "sgd": sgd})


def _scores(folder: Path, plan: Plan, name: str) -> ScoreTable:
    train = comparisons.most_frequent_labels(_mulan(folder, name, "train"), N_LABELS)
    test = _mulan(folder, name, "test")
    kept = [test.label_names.index(label) for label in train.label_names]
    test = MultiLabelData(test.X, test.Y[:, kept], train.label_names, test.feature_names)
    model = MultiLabelMRF("corrective", 1.0, plan.passes, plan.tol, random_state=0, scale=None)
    return _both(name, SCORED[name], model, _part(train, plan.most), _part(test, plan.most), plan.grid, plan.folds)


def _hierarchy(folder: Path, plan: Plan) -> ScoreTable:
    where = folder / "hierarchical_enron_corr"
    train, test = (_part(read_clus(data_file(where, f"Enron_corr_{part}.arff")), plan.most) for part in ("trainvalid", "test"))
    model = HierarchicalMultiLabel("corrective", 1.0, plan.passes, plan.tol, hierarchy=train.hierarchy, random_state=0)
    return _both("Enron-corr", "SWIKI-2011", model, train, test, plan.hierarchy_grid, plan.folds)


def _both(
    name: str, beside: str, model: Any, train: MultiLabelData, test: MultiLabelData, grid: Sequence[float], folds: int
) -> ScoreTable:
    """Slack and margin rescaling on one data set."""
    log.info("%s, slack and margin rescaling: %d values of C, %d folds", name, len(grid), folds)
    rows = [comparisons.score_surrogate(model.set_params(surrogate=one), train, test, grid, folds) for one in ("slack", "margin")]
    return ScoreTable(name, len(train), len(test), beside, model.tol, rows)


def _part(data: MultiLabelData, most: int) -> MultiLabelData:
    return data.take(range(min(most, len(data))))


def _mulan(folder: Path, name: str, part: str) -> MultiLabelData:
    where = folder / f"multilabel_{name.replace('-', '_')}"
    return read_mulan(data_file(where, f"{name}-{part}.arff"), data_file(where, f"{name}.xml"))


def _search_lines(table: SearchTable) -> list[str]:
    kind = "the linear programming relaxation" if table.relaxed else "whole labels"
    beside = f"the paper, {table.beside}:"
    amount = f"{table.samples} samples, up to {table.rounds} rounds, C {table.C:.3g}"
    lines = [
        f"Searches over {kind}: {table.data}, {N_LABELS} labels, {amount}",
        f"{'':<10} {'success':>9} {'queries':>8} {'ms':>8}{PRINTED}   {beside} {'success':>8} {'queries':>8} {'ms':>6}",
    ]
    paper = PAPER_SEARCHES[table.beside]
    for row in table.rows:
        own = f"{row.method:<10} {100 * row.success:>7.1f} % {row.queries:>8.1f} {row.milliseconds:>8.2f}"
        if row.method in paper:
            success, queries, ms = paper[row.method]
            own += f"{PRINTED}   {'':<{len(beside)}} {success:>6.1f} % {queries:>8.1f} {ms:>6.1f}"
        lines.append(own)
    return lines


def _score_lines(title: str, table: ScoreTable, paper: dict[str, tuple[float, float, float, float]]) -> list[str]:
    tree = any(row.h_loss is not None for row in table.rows)
    names = ["C", "accuracy", "label loss", "micro F1", "macro F1", "example F1", *(["H-loss"] if tree else []), "gap"]
    lines = [
        f"{title}: {table.data}, {table.n_train} examples, {table.n_test} to test on; C by cross-validation on the former, "
        f"training to a gap of {100 * table.tol:g} %",
        f"{'':<18}" + "".join(f"{name:>12}" for name in names),
    ]
    for row in table.rows:
        figures = [row.accuracy, row.label_loss, row.micro_f1, row.macro_f1, row.example_f1, *([row.h_loss] if tree else [])]
        gap = "" if row.gap is None else f"{100 * row.gap:.2g} %"
        lines.append(f"{row.surrogate:<18}{row.C:>12.3g}" + "".join(f"{value or 0.0:>12.4f}" for value in figures) + f"{gap:>12}")
    for surrogate, figures_of_paper in paper.items():
        cells = "".join(f"{value:>12.4f}" for value in figures_of_paper)
        lines.append(f"{PRINTED}{surrogate + ', the paper':<18}{'':>12}{cells}")
    if table.data != table.beside:
        lines.append(f"{PRINTED}The paper's figures are of {table.beside}.")
    return lines
