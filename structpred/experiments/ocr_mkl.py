"""Table 1 of the online multiple kernel learning paper (Martins et al. 2011, section 4): handwritten words, ten folds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from structpred.experiments.experiment import PRINTED, Claim, Experiment, Wanted, data_file
from structpred.experiments.ocr_kernels import Model, Plan, Run, one_fold, parted
from structpred.io.ocr import read_ocr

#: kernels, how they are combined -> the paper's accuracy, its standard deviation, and seconds of training
PAPER = {
    "linear": (72.8, 4.4, 6),
    "quadratic": (85.5, 0.3, 116),
    "Gaussian": (84.1, 0.4, 123),
    "average L+Q+G": (84.3, 0.3, 118),
    "MKL L+Q+G": (87.5, 0.4, 279),
    "B1-spline": (75.4, 0.9, 8),
    "average L+B1": (83.0, 0.3, 15),
    "MKL L+B1": (85.2, 0.3, 15),
}
MODELS = {
    "first": [
        Model("linear", ("L",)),
        Model("quadratic", ("Q",)),
        Model("Gaussian", ("G",)),
        Model("average L+Q+G", ("L", "Q", "G"), mean=True),
        Model("MKL L+Q+G", ("L", "Q", "G")),
    ],
    "second": [Model("B1-spline", ("B",)), Model("average L+B1", ("L", "B"), mean=True), Model("MKL L+B1", ("L", "B"))],
}


@dataclass(frozen=True)
class Row:
    """One model. accuracies: the share of right letters of each run, in percent; mean, deviation: of these. C, eta0: as chosen in
    each run. seconds: CPU time of one training run. weights: |w_k| / sum |w_k| of its groups, on average. paper: accuracy,
    standard deviation, seconds. gap: of batch training, the mean share of the primal.
    """

    model: str
    groups: Sequence[str]
    accuracies: Sequence[float]
    mean: float
    deviation: float
    C: Sequence[float]
    eta0: Sequence[float]
    seconds: float
    weights: Sequence[float]
    paper: tuple[float, float, float] | None
    gap: float | None


@dataclass(frozen=True)
class Table:
    """All models. folds: how many runs; letters, tested: of the first one. cpu_seconds: of all runs."""

    folds: int
    letters: int
    tested: int
    epochs: int
    rows: Sequence[Row]
    cpu_seconds: float = 0.0


#: a claim of the paper: what is compared with the best of what, and by how many points it is better in the paper's table
CLAIMS = (
    ("above the best kernel", "MKL L+Q+G", ("linear", "quadratic", "Gaussian", "average L+Q+G"), 2.0),
    ("L + B1 above each", "MKL L+B1", ("linear", "B1-spline"), 9.8),
    ("L + B1 above their average", "MKL L+B1", ("average L+B1",), 2.2),
)


class OcrKernels(Experiment):
    """Combine kernels for handwritten words, with learnt weights or equal ones (Martins, Smith, Xing, Aguiar & Figueiredo 2011).

    \b
    first   linear, quadratic and Gaussian kernels, their average, and online multiple kernel learning
    second  a sparse B1-spline kernel, and its average and combination with the linear one

    Ten runs: train on one fold of the OCR letters, test on the nine others. C of 0.1, 1, ..., 10000 is chosen by cross-validation
    within the training fold, in three parts; the step size of 0.01, 0.1, 1, 10 and beyond that goes with each C is the one with
    the least objective after five epochs. Twenty epochs. Takes half an hour of one processor, in proportion to the folds;
    --quick some seconds. With --output a run that was stopped continues after the last fold that was done.
    """

    name = "ocr-mkl"
    summary = "Multiple kernel learning on handwritten words."
    tables = ("first", "second")
    numbers: ClassVar = {"folds": (10, "How many runs, of ten.")}
    switches: ClassVar = {"batch": "The batch optimum of multiple kernel learning, too, to a gap of 1 %, with C of at most 10."}

    def run(self, folder: Path, wanted: Wanted) -> Table:
        """Every model on every fold; folds that are kept in the output folder are not run again."""
        words = read_ocr(data_file(folder / "ocr_letters", "letter.data"))
        plan = Plan.quick() if wanted.quick else Plan()
        models = MODELS[wanted.only] if wanted.only else [*MODELS["first"], *MODELS["second"]]
        n_folds = 1 if wanted.quick else min(max(wanted.numbers.get("folds", 10), 1), 10)
        batch = "batch" in wanted.switches
        one = partial(one_fold, words, models=models, plan=plan, batch=batch)
        folds = [wanted.kept(f"fold-{k}", list[Run], partial(one, k)) for k in range(n_folds)]
        letters, tested = (some.n_letters for some in parted(words, 0, plan.most))
        return Table(n_folds, letters, tested, plan.epochs, [*map(_row, zip(*folds, strict=True))])

    def text(self, figures: Table) -> str:
        """One line a model, the paper's figures on the right."""
        plural = "" if figures.folds == 1 else "s"
        sizes = f"train on one fold ({figures.letters:,} letters), test on {figures.tested:,}"
        lines = [
            f"OCR letters, {figures.folds} run{plural}: {sizes}; {figures.epochs} epochs",
            f"{'kernel':<18}{'accuracy':>15}{'seconds':>9}{'C':>8}{'eta0':>7}{PRINTED}   {'paper':<14}{'seconds':>8}",
        ]
        for row in figures.rows:
            measured = f"{row.mean:.1f} +- {row.deviation:.1f} %"
            beside = f"   gap {100 * row.gap:.1f} %" if row.gap is not None else ""
            if row.paper is not None:
                beside = f"{PRINTED}   {f'{row.paper[0]:.1f} +- {row.paper[1]:.1f} %':<14}{row.paper[2]:>8g}"
            eta0 = f"{np.median(row.eta0):g}" if row.gap is None else "-"
            settings = f"{np.median(row.C):>8g}{eta0:>7}"
            lines.append(f"{row.model:<18}{measured:>15}{row.seconds:>9.2f}{settings}{beside}".rstrip())
        for row in figures.rows:
            if row.model.startswith("MKL"):
                weights = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(row.groups, row.weights, strict=True))
                lines.append(f"{row.model}: weights {weights}")
        lines.append(f"{figures.cpu_seconds:.0f} CPU seconds in all")
        return "\n".join(lines)

    def claims(self, figures: Table) -> list[Claim]:
        """What the paper says of the models that were run."""
        rows, claim, found = {row.model: row for row in figures.rows}, partial(Claim, "Martins et al. 2011"), []
        fast, slow = rows.get("MKL L+B1"), rows.get("MKL L+Q+G")
        if slow:
            found.append(claim("OCR: accuracy of MKL, three kernels", "87.5", f"{slow.mean:.1f}", round(slow.mean, 1) >= 87.5))
        for words, model, others, points in CLAIMS:
            if {model, *others} <= set(rows):
                more = round(rows[model].mean - max(rows[other].mean for other in others), 1)
                found.append(claim(words, f"{points:+}", f"{more:+.1f}", more >= points))
        if fast and slow:
            share = slow.seconds / fast.seconds
            words = "L + B1 trains faster than three kernels"
            found.append(claim(words, "18.6 times", f"{share:.1f} times", share >= 279 / 15))
        return found


def _row(runs: Sequence[Run]) -> Row:
    shares, gaps = np.array([run.accuracy for run in runs]), [run.gap for run in runs if run.gap is not None]
    return Row(
        runs[0].model, runs[0].groups, shares.tolist(), float(shares.mean()), float(shares.std(ddof=1)) if len(runs) > 1 else 0.0,
        [run.C for run in runs], [run.eta0 for run in runs], float(np.mean([run.seconds for run in runs])),
        np.mean([run.weights for run in runs], axis=0).tolist(), PAPER.get(runs[0].model), float(np.mean(gaps)) if gaps else None,
    )  # fmt: skip
