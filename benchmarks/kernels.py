"""Kernels on OCR letters: Gaussian processes beside a CRF, accuracy and calibration: ``python benchmarks/kernels.py [--quick]``.

Train on fold 0 and test on the other nine. Fold 0 has 626 words of 4,617 letters, of which the Gram matrix takes 170 MB and the
features made of it 85 MB; all ten folds (52,152 letters) would take 22 GB. C is chosen on every fifth word of fold 0:
by the Brier score of the marginals, sum_k (p_k - [letter is k])^2 of a letter, for models with probabilities, else by accuracy.

Then multiple kernel learning with the linear, quadratic and Gaussian kernels on fold 0: online, twenty passes, and in batch,
to a gap of 1 %, with C of 1 and of 10.
"""

import argparse
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table, verdict

#: the kernels: linear, quadratic with inner products of about one, Gaussian with sigma^2 = 5
KERNELS = ("linear", "quadratic", "rbf")
#: (model, kernel): the values of C to choose from, in the scale of the kernel
CANDIDATES: dict[tuple[str, str], tuple[float, ...]] = {
    ("crf", "none"): (0.1, 0.3, 1.0, 3.0),
    ("gp", "linear"): (0.1, 0.3, 1.0, 3.0),
    ("gp", "quadratic"): (1.0, 3.0, 10.0, 30.0),
    ("gp", "rbf"): (10.0, 30.0, 100.0, 300.0),
    ("m3n", "linear"): (0.03, 0.1, 0.3),
    ("m3n", "quadratic"): (0.3, 1.0, 3.0),
    ("m3n", "rbf"): (1.0, 3.0, 10.0),
}
NAMES = {"crf": "CRF: ChainLabeler, lbfgs", "gp": "GaussianProcessLabeler", "m3n": "KernelChainLabeler, bcfw"}


def made(model: str, kernel: str, C: float, max_iter: int) -> Any:
    """An estimator that is not fitted."""
    from structpred.models import ChainLabeler, GaussianProcessLabeler, KernelChainLabeler
    from structpred.models.kernels.functions import RBF, Linear, Polynomial

    if model == "crf":
        return ChainLabeler("lbfgs", C, max_iter, 0.01, check_every=1)
    given = {"linear": Linear(), "quadratic": Polynomial(2, 1 / 32, 1.0), "rbf": RBF(0.1)}[kernel]
    if model == "gp":
        return GaussianProcessLabeler(C=C, kernel=given, max_iter=max_iter, tol=0.01, check_every=1)
    return KernelChainLabeler(C=C, kernel=given, max_iter=20, tol=0.01, random_state=0)


def judged(model: Any, X: Any, letters: list[list[str]]) -> dict[str, float]:
    """The share of right letters; with probabilities also the Brier score, and the share of right ones among those above .9."""
    import numpy as np

    gold = np.concatenate([np.array(word) for word in letters])
    right = np.concatenate(model.predict(X)) == gold
    found = {"accuracy": float(right.mean())}
    if model.probabilistic_:
        p = np.concatenate(model.predict_marginals(X))
        truth = model.classes_[None] == gold[:, None]
        sure = p.max(axis=1) > 0.9
        found["brier"] = float(((p - truth) ** 2).sum(axis=1).mean())
        found["sure"], found["of_sure"] = float(sure.mean()), float(truth[sure, p[sure].argmax(axis=1)].mean())
        found["claimed"] = float(p[sure].max(axis=1).mean())
    return found


def measured(watch: Stopwatch, file: str, model: str, kernel: str, max_iter: int) -> dict[str, Any]:
    """Choose C inside fold 0, train on fold 0, test on the nine others."""
    import numpy as np

    from structpred.io import read_ocr

    words = read_ocr(file)
    fold, rest = words.select(words.folds == 0), words.select(words.folds != 0)
    part = np.arange(len(fold)) % 5
    first, held_out = fold.select(part != 4), fold.select(part == 4)

    made(model, kernel, 1.0, 1).fit(fold.select(np.arange(5)), fold.letters[:5])  # loads the kernels

    def loss(C: float) -> float:
        found = judged(made(model, kernel, C, max_iter).fit(first, first.letters), held_out, held_out.letters)
        return found.get("brier", -found["accuracy"])

    with watch("select"):
        C = min(CANDIDATES[model, kernel], key=loss)
    with watch("train"):
        fitted = made(model, kernel, C, max_iter).fit(fold, fold.letters)
    with watch("test"):
        found = judged(fitted, rest, rest.letters)
    gap, rank = fitted.certificate_.relative_gap, len(getattr(fitted, "support_", ()))
    return {**found, "C": C, "rank": rank, "gap": gap, "passes": fitted.n_iter_}


def several(watch: Stopwatch, file: str, trainer: str, C: float) -> dict[str, Any]:
    """Three kernels on fold 0: seconds of training, without the Gram matrices, and the gap."""
    from structpred.io import read_ocr
    from structpred.models import KernelChainLabeler

    words = read_ocr(file)
    fold, rest = words.select(words.folds == 0), words.select(words.folds == 1)
    limits: dict[str, Any] = {"max_iter": 20, "tol": 0.0, "check_every": 20}
    if trainer == "corrective":
        limits = {"max_iter": 200, "tol": 0.01, "check_every": 5}

    def model(**settings: Any) -> Any:
        return KernelChainLabeler(trainer=trainer, C=C, kernels=["linear", "quadratic", ("rbf", 5.0)], **settings)

    model(max_iter=1).fit(fold.select(range(5)), fold.letters[:5])  # loads the kernels
    with watch("train"):
        fitted = model(**limits).fit(fold, fold.letters)
    last = fitted.history_[-1]
    beta = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(fitted.group_names_, fitted.group_weights_, strict=True))
    found = {"gap": fitted.certificate_.relative_gap, "passes": fitted.n_iter_, "cpu": last["cpu_seconds"], "beta": beta}
    return {**found, "accuracy": fitted.score(rest, rest.letters)}


def show_several(file: str) -> None:
    """Online and batch multiple kernel learning."""
    runs = [("online_mkl", 10.0, 5.0), ("corrective", 1.0, 10.0), ("corrective", 10.0, 30.0)]
    made = [in_child("kernels:several", file=file, trainer=trainer, C=C) for trainer, C, _ in runs]
    lines = [
        [trainer, f"{C:g}", f"{found['cpu']:.1f}", f"{100 * found['gap']:.1f} % in {found['passes']}", found["beta"],
         f"{100 * found['accuracy']:.2f}", f"{found['peak_mb']:.0f}"]
        for (trainer, C, _), found in zip(runs, made, strict=True)
    ]  # fmt: skip
    head = ["trainer", "C", "CPU s", "gap / primal", "weights", "accuracy on fold 1 %", "peak MB"]
    print(f"\nThree kernels, fold 0\n\n{table(head, lines)}\n")
    for (trainer, C, limit), found in zip(runs, made, strict=True):
        done = found["cpu"] <= limit and (trainer == "online_mkl" or found["gap"] <= 0.01)
        print(verdict(f"{trainer}, C = {C:g}: in {limit:g} s", done, f"{found['cpu']:.1f} s"))


def row(model: str, kernel: str, found: dict[str, Any]) -> list[str]:
    """One line of the table."""
    sure = f"{100 * found['sure']:.1f} %: {found['of_sure']:.3f} / {found['claimed']:.3f}" if "sure" in found else "-"
    return [
        NAMES[model], kernel, f"{found['C']:g}", str(found["rank"] or "-"), f"{100 * found['accuracy']:.2f}",
        f"{found['brier']:.4f}" if "brier" in found else "-", sure, f"{found['seconds']['train']:.1f}",
        f"{found['seconds']['test']:.1f}", f"{100 * found['gap']:.2f} % in {found['passes']}", f"{found['peak_mb']:.0f}",
    ]  # fmt: skip


def main() -> None:
    """Print the table and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the CRF and the Gaussian process with the quadratic kernel only")
    quick = parser.parse_args().quick
    file = str(data_folder() / "ocr_letters" / "letter.data.gz")
    chosen = [("crf", "none"), ("gp", "quadratic")] if quick else list(CANDIDATES)
    found = {one: in_child("kernels:measured", file=file, model=one[0], kernel=one[1], max_iter=200) for one in chosen}
    print(f"\nOCR letters, train on fold 0, test on the nine others ({machine()})\n")
    head = ["model", "kernel", "C", "rank", "letter accuracy %", "Brier", "p > .9: right / claimed", "train CPU s", "test CPU s",
            "gap / primal", "peak MB"]  # fmt: skip
    print(table(head, [row(*one, found[one]) for one in chosen]))
    crf, best = found["crf", "none"], min((one for one in chosen if one[0] == "gp"), key=lambda one: found[one]["brier"])
    print()
    for figure in ("accuracy", "brier"):
        better = (found[best][figure] - crf[figure]) * (1 if figure == "accuracy" else -1) > 0
        text = f"{found[best][figure]:.4f} against {crf[figure]:.4f}"
        print(verdict(f"{figure} of the best Gaussian process ({best[1]}) is better than the CRF's", better, text))
    show_several(file)


if __name__ == "__main__":
    main()
