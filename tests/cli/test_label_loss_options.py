"""Losses of whole sets and columns of kernels in the shell, and what the log says where no loss is left."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from structpred.io import read_mulan
from structpred.models import MultiLabelMRF

Here = Callable[..., tuple[int, str, str]]


def test_columns_of_a_kernel_in_the_shell(here: Here, labelled: Path, tmp_path: Path) -> None:
    """--n-components is a share of the trace or a number; wrong values are named."""
    train = ("train", "multilabel", str(labelled / "weather-train.arff"), "-o", "k.spz")
    assert here(*train, "--kernel", "rbf", "--n-components", "7", cwd=tmp_path)[0] == 0
    assert len(MultiLabelMRF.load(tmp_path / "k.spz").support_) == 7
    (tmp_path / "k.spz").unlink()
    for bad in ("1.5", "nan", "inf", "0", "few"):
        code, _, err = here(*train, "--kernel", "rbf", "--n-components", bad, cwd=tmp_path)
        assert (code, bad in err, "components" in err) == (2, True, True), err
    code, _, err = here(*train, "--n-components", "7", cwd=tmp_path)
    assert (code, "--n-components is for --kernel" in err) == (2, True)
    assert not (tmp_path / "k.spz").exists()


def test_losses_of_sets_in_the_shell(here: Here, labelled: Path, tmp_path: Path) -> None:
    """What help names trains as in Python, also on shards; what cannot be is one line, and other kinds do not have them."""
    data = labelled / "weather-train.arff"
    train = ("train", "multilabel", str(data), "-o", "m.spz")
    assert "extra_parts, hamming; of whole sets, C ten times as large: f1, subset;" in " ".join(
        here(*train[:2], "--help", cwd=tmp_path)[1].split()
    )
    for name in ("f1", "subset"):
        code, _, err = here(*train, "--loss", name, "-C", "1", cwd=tmp_path)
        assert code == 0, err
        same = MultiLabelMRF(C=1.0, loss=name, tol=0.01, random_state=0).fit(read_mulan(data, labelled / "weather.xml"))
        model = MultiLabelMRF.load(tmp_path / "m.spz")
        assert (model.loss, model.coef_.tobytes()) == (name, same.coef_.tobytes())
    (tmp_path / "m.spz").unlink()
    for options, words in (
        ("--surrogate slack", "loss='f1' needs"),
        ("--surrogate log", "loss='f1' needs"),
        ("--trainer oeg", "OnlineEG cannot minimise SetHinge; trainers that can: "),
        (f"--hierarchy {labelled / 'edges.txt'} --label-weights depth", "equal label_weights"),
        ("--trainer marginal_bcfw,joint=maybe", "joint must be True or False, got 'maybe'"),
    ):
        code, _, err = here(*train, "--loss", "f1", *options.split(), cwd=tmp_path)
        assert (code, words in err) == (2, True), err
    assert not (tmp_path / "m.spz").exists()
    assert "f1" not in here("train", "structure", "--help", cwd=tmp_path)[1]


def test_where_rows_separate_the_log_says_that_c_no_longer_matters(here: Here, tmp_path: Path) -> None:
    """The share that it tells is a bound: the optimum at ten times C is not further below the same weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    Y = (X[:, :3] + np.sign(X[:, :3]) > 0).astype(np.int64)
    X[:, :3] += np.sign(X[:, :3])
    lines = [
        "@relation r",
        *(f"@attribute f{k} numeric" for k in range(8)),
        *(f"@attribute l{k} {{0,1}}" for k in range(3)),
        "@data",
    ]
    text = "\n".join([*lines, *(",".join(map(str, [*x, *y])) for x, y in zip(X.tolist(), Y.tolist(), strict=True))])
    (tmp_path / "far.arff").write_text(text + "\n")
    train = ("train", "multilabel", "far.arff", "--labels", "3", "--scale", "none", "--tol", "1e-3", "--max-iter", "2000")
    assert "hardly any loss" not in here(*train, "-C", "0.01", "-o", "s.spz", cwd=tmp_path)[2]
    code, _, err = here(*train, "-C", "100", "-o", "m.spz", cwd=tmp_path)
    assert code == 0, err
    share = float(err.split("hardly any loss is left: at 10 C the same weights are optimal to ")[1].split(" %")[0]) / 100
    best = MultiLabelMRF("n_slack", C=1000.0, max_iter=200, tol=1e-5, scale=None).fit(X, Y).certificate_
    w = MultiLabelMRF.load(tmp_path / "m.spz")
    loss = w.certificate_.primal - 0.5 * float(w.coef_ @ w.coef_) / (100 * 60)
    here_at = 0.5 * float(w.coef_ @ w.coef_) / (1000 * 60) + loss
    assert best.relative_gap < 1e-3
    assert here_at - best.primal <= share * here_at
