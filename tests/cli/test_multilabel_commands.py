"""Promises of the command line for multi-label data on good input: what each command writes, where, and that options arrive."""

import gzip
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import PROGRAM, Shell, hear_interrupts
from label_helpers import LABELS, examples

from structpred.cli.kinds.label_sets import LabelSets
from structpred.cli.train import train_command
from structpred.evaluation import evaluate_multilabel
from structpred.io import read_mulan
from structpred.models import HierarchicalMultiLabel, MultiLabelMRF

Here = Callable[..., tuple[int, str, str]]
FORMATS = {"arff": "weather-{}.arff", "libsvm": "{}.svm", "npz": "{}.npz", "clus": "tree-{}.arff"}


def figures(here: Here, *arguments: str, cwd: Path) -> dict[str, object]:
    """What `evaluate --json` prints."""
    code, out, err = here("evaluate", *arguments, "--json", cwd=cwd)
    assert code == 0, err
    found: dict[str, object] = json.loads(out)
    return found


def test_train_says_what_it_does_and_leaves_one_file(shell: Shell, labelled: Path, tmp_path: Path) -> None:
    """Data, certificate, held-out score and the file are reported on stderr; stdout is empty; the XML next to TRAIN is found."""
    train, dev = str(labelled / "weather-train.arff"), str(labelled / "weather-test.arff")
    done = shell("train", "multilabel", train, "--dev", dev, "-o", "m.spz", "--surrogate", "slack", "--max-iter", "30")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    for said in ("80 examples, 5 features, 4 labels", "format arff", "gap", "best dev score", "6 edges", "EnumerationMRF"):
        assert said in done.stderr
    assert os.listdir(tmp_path) == ["m.spz"]
    facts = MultiLabelMRF.load(tmp_path / "m.spz").reader_
    assert facts["format"] == "arff"
    assert facts["labels"] == str(labelled / "weather.xml")


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_from_training_to_scores(format: str, here: Here, labelled: Path, tmp_path: Path) -> None:
    """The format is told from the file; the scores of `evaluate` are those of the model and of the lines of `predict`."""
    train, test = (str(labelled / FORMATS[format].format(part)) for part in ("train", "test"))
    code, _, err = here("train", "multilabel", train, "-o", "m.spz", "-q", cwd=tmp_path)
    assert (code, err) == (0, "")
    kind = HierarchicalMultiLabel if format == "clus" else MultiLabelMRF
    model = kind.load(tmp_path / "m.spz")
    assert model.reader_["format"] == format
    X, Y = examples(40, 1)
    if format == "clus":
        Y[Y.sum(axis=1) == 0, 3] = 1
        Y = model.hierarchy_.closed(Y).astype(np.int64)
    expected = evaluate_multilabel(Y, model.predict(X))
    found = figures(here, "m.spz", test, cwd=tmp_path)
    for name in ("accuracy", "label_loss", "subset_accuracy", "micro_f1", "macro_f1"):
        assert found[name] == pytest.approx(getattr(expected, name), abs=1e-12)
    assert expected.accuracy > 0.6
    assert (found["hierarchy"] is not None) == (format == "clus")
    code, out, err = here("predict", "m.spz", test, cwd=tmp_path)
    names = model.label_names_
    assert [line.split("\t") if line else [] for line in out.split("\n")[:-1]] == [
        [names[k] for k in np.flatnonzero(row)] for row in model.predict(X)
    ]


def test_predict_needs_no_labels(here: Here, labelled: Path, tmp_path: Path) -> None:
    """ARFF without the label attributes gives the same lines; so do packed files, streams and -o."""
    test, model = str(labelled / "weather-test.arff"), str(labelled / "m.spz")
    code, out, err = here("predict", model, test, cwd=tmp_path)
    assert code == 0, err
    assert len(out.splitlines()) == 40
    assert "storm cloud" in out
    assert here("predict", model, str(labelled / "bare.arff"), cwd=tmp_path)[1] == out
    (tmp_path / "p.arff.gz").write_bytes(gzip.compress((labelled / "bare.arff").read_bytes()))
    assert here("predict", model, "p.arff.gz", "-o", "out.gz", cwd=tmp_path)[1] == ""
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode() == out


def test_predict_reads_streams(shell: Shell, labelled: Path) -> None:
    """Data come from standard input if the format is named."""
    text = (labelled / "bare.arff").read_text()
    done = shell("predict", str(labelled / "m.spz"), "-", "--format", "arff", stdin=text)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shell("predict", str(labelled / "m.spz"), str(labelled / "bare.arff")).stdout


def test_predict_as_json(here: Here, labelled: Path, tmp_path: Path) -> None:
    """Each object holds labels and scores, positive for these very labels; with the log loss and --marginals probabilities."""
    test = str(labelled / "weather-test.arff")
    code, out, err = here("predict", str(labelled / "m.spz"), test, "--json", cwd=tmp_path)
    assert code == 0, err
    for line in out.splitlines():
        entry = json.loads(line)
        assert entry["labels"] == [name for name in LABELS if entry["scores"][name] > 0]
    train = str(labelled / "weather-train.arff")
    assert here("train", "multilabel", train, "--trainer", "oeg", "-C", "1", "-o", "p.spz", "-q", cwd=tmp_path)[0] == 0
    _, out, _ = here("predict", "p.spz", test, "--json", "--marginals", cwd=tmp_path)
    model = MultiLabelMRF.load(tmp_path / "p.spz")
    table = [list(json.loads(line)["marginals"].values()) for line in out.splitlines()]
    np.testing.assert_allclose(table, model.predict_marginals(examples(40, 1)[0]), atol=1e-12)


def test_evaluate_tells_each_label(here: Here, labelled: Path, tmp_path: Path) -> None:
    """The table has the scores of all labels, and with --per-type a line per label; of a hierarchical model those along it."""
    code, out, _ = here("evaluate", str(labelled / "m.spz"), str(labelled / "weather-test.arff"), "--per-type", cwd=tmp_path)
    assert code == 0
    figures = ("accuracy (Jaccard)", "label loss (Hamming)", "whole sets right", "micro F1", "macro F1", "AU(PRC), micro")
    for name in (*figures, *LABELS):
        assert any(line.startswith(name) for line in out.splitlines())
    train, test = (str(labelled / f"tree-{part}.arff") for part in ("train", "test"))
    assert here("train", "multilabel", train, "--threshold", "f1", "-o", "t.spz", "-q", cwd=tmp_path)[0] == 0
    assert HierarchicalMultiLabel.load(tmp_path / "t.spz").threshold == "f1"
    _, out, _ = here("evaluate", "t.spz", test, cwd=tmp_path)
    assert "H-loss of an example" in out
    assert "F1 at depth 1" in out


def test_a_hierarchy_of_ones_own(here: Here, labelled: Path, tmp_path: Path) -> None:
    """With --hierarchy no example gets a label without its parent, neither in training nor in prediction."""
    train, bare = str(labelled / "weather-train.arff"), str(labelled / "bare.arff")
    options = ("--hierarchy", str(labelled / "edges.txt"), "--label-weights", "depth", "-C", "1")
    code, _, err = here("train", "multilabel", train, *options, "-o", "h.spz", cwd=tmp_path)
    assert code == 0, err
    assert "hierarchy of depth 1" in err
    model = HierarchicalMultiLabel.load(tmp_path / "h.spz")
    assert model.hierarchy_.edges.tolist() == [[1, 3]]
    assert model.label_weights_.tolist() == [1.0, 1.0, 1.0, 0.75]
    _, out, _ = here("predict", "h.spz", bare, cwd=tmp_path)
    sets = [set(line.split("\t")) for line in out.splitlines()]
    assert all("rain" in labels for labels in sets if "storm cloud" in labels)
    assert any("storm cloud" in labels for labels in sets)


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    ("options", "attribute", "value"),
    [
        (("--trainer", "n_slack"), "trainer", "n_slack"),
        (("--surrogate", "slack"), "surrogate", "slack"),
        (("--surrogate", "margin"), "surrogate", "margin"),
        (("-C", "0.5"), "C", 0.5),
        (("--max-iter", "3"), "max_iter", 3),
        (("--tol", "0.5"), "tol", 0.5),
        (("--check-every", "2"), "check_every", 2),
        (("--bias", "0"), "bias", 0.0),
        (("--seed", "5"), "random_state", 5),
        (("--edges", "none"), "edges", 0),
        (("--edges", "3"), "edges", 3),
        (("--edges", "tree"), "edges", "tree"),
        ((), "edges", "complete"),
    ],
)
def test_options_arrive(
    options: tuple[str, ...], attribute: str, value: object, here: Here, labelled: Path, tmp_path: Path
) -> None:
    """Each option is a setting of the model in the file."""
    train = str(labelled / "weather-train.arff")
    code, _, err = here("train", "multilabel", train, *options, "-o", "m.spz", "-q", cwd=tmp_path)
    assert code == 0, err
    assert getattr(MultiLabelMRF.load(tmp_path / "m.spz"), attribute) == value


def test_labels_by_number_and_features_from_zero(here: Here, labelled: Path, tmp_path: Path) -> None:
    """--labels N takes the last attributes, and LIBSVM's numbers may begin at 0; test data are then read alike."""
    train, test = str(labelled / "weather-train.arff"), str(labelled / "weather-test.arff")
    assert here("train", "multilabel", train, "--labels", "4", "-o", "n.spz", "-q", cwd=tmp_path)[0] == 0
    assert here("train", "multilabel", train, "-o", "x.spz", "-q", cwd=tmp_path)[0] == 0
    assert here("evaluate", "n.spz", test, cwd=tmp_path)[1] == here("evaluate", "x.spz", test, cwd=tmp_path)[1]
    for part in ("train", "test"):
        lines = (labelled / f"{part}.svm").read_text().splitlines()
        shifted = [_from_zero(line) for line in lines]
        (tmp_path / f"{part}0.svm").write_text("\n".join(shifted) + "\n")
    assert here("train", "multilabel", "train0.svm", "--zero-based", "-o", "z.spz", "-q", cwd=tmp_path)[0] == 0
    assert here("train", "multilabel", str(labelled / "train.svm"), "-o", "s.spz", "-q", cwd=tmp_path)[0] == 0
    assert here("predict", "z.spz", "test0.svm", cwd=tmp_path) == here(
        "predict", "s.spz", str(labelled / "test.svm"), cwd=tmp_path
    )


def _from_zero(line: str) -> str:
    labels, *pairs = line.split(" ")
    return " ".join([labels, *(f"{int(k) - 1}:{value}" for k, value in (pair.split(":") for pair in pairs))])


def test_events_and_strict(here: Here, labelled: Path, tmp_path: Path) -> None:
    """--json tells start, passes and end with the certificate; --strict ends with 3 where the gap is not reached, model kept."""
    train = str(labelled / "weather-train.arff")
    command = ("train", "multilabel", train, "-o", "m.spz", "--max-iter", "2", "--tol", "1e-9")
    code, out, err = here(*command, "--json", cwd=tmp_path)
    assert code == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["event"] for event in events] == ["start", "pass", "pass", "end"]
    assert events[0]["examples"] == 80
    assert events[-1]["dual"] <= events[-1]["primal"]
    assert events[-1]["labels"] == list(LABELS)
    (tmp_path / "m.spz").unlink()
    code, _, err = here(*command, "--strict", cwd=tmp_path)
    assert code == 3
    assert "not converged" in err
    assert (tmp_path / "m.spz").exists()


def test_inspect_names_features_and_pairs(here: Here, labelled: Path, tmp_path: Path) -> None:
    """The strongest feature of each label is its own one; rain and storm go together; JSON holds the same figures."""
    model = str(labelled / "m.spz")
    code, out, _ = here("inspect", model, "--top", "2", cwd=tmp_path)
    assert code == 0
    assert "slack rescaling" in out
    assert "joined by    6 pairs of labels" in out
    _, text, _ = here("inspect", model, "--json", "--top", "1", cwd=tmp_path)
    data = json.loads(text)
    assert data["labels"] == list(LABELS)
    assert [entry["positive"][0][0] for entry in data["weights"]["labels"]] == ["f0", "f1", "f2", "f3"]
    assert data["weights"]["pairs"][0][:2] == ["rain", "storm cloud"]
    assert f"{data['weights']['pairs'][0][2]:+.4f}  rain storm cloud" in out
    _, text, _ = here("inspect", model, "--json", "--label", "wind", cwd=tmp_path)
    assert [entry["label"] for entry in json.loads(text)["weights"]["labels"]] == ["wind"]


def test_a_kernel_in_the_shell(here: Here, labelled: Path, tmp_path: Path) -> None:
    """train --kernel says what it made of the features; the model shows and explains by training rows; no program, no shards."""
    train = str(labelled / "weather-train.arff")
    code, _, err = here("train", "multilabel", train, "--kernel", "rbf", "--gamma", "scale", "-o", "k.spz", cwd=tmp_path)
    assert code == 0, err
    model = MultiLabelMRF.load(tmp_path / "k.spz")
    assert f"5 features, standardised, kernel rbf with {len(model.support_)} training rows, 4 labels" in err
    assert model.C == 1.0  # with a kernel, where none is given
    assert here("train", "multilabel", train, "--kernel", "rbf", "-C", "0.1", "-o", "c.spz", cwd=tmp_path)[0] == 0
    assert MultiLabelMRF.load(tmp_path / "c.spz").C == 0.1
    same = MultiLabelMRF(C=1.0, kernel="rbf", tol=0.01, random_state=0).fit(read_mulan(train, labelled / "weather.xml"))
    assert same.coef_.tobytes() == model.coef_.tobytes()
    _, out, _ = here("inspect", "k.spz", "--top", "1", cwd=tmp_path)
    assert "kernel rbf with" in out
    assert "row " in out
    _, out, _ = here("explain", "k.spz", train, "--label", "rain", cwd=tmp_path)
    assert "row " in out
    code, _, err = here("export", "k.spz", "-o", "program.py", cwd=tmp_path)
    assert (code, (tmp_path / "program.py").exists()) == (2, False)
    assert "it has a kernel, which light programs do not have" in err
    code, _, err = here("train", "multilabel", train, "--kernel", "rbf", "--shards", "2", "-o", "s.spz", cwd=tmp_path)
    assert code != 0
    assert "kernel: training on shards does not take it" in err
    code, _, err = here("train", "multilabel", train, "--gamma", "2", "-o", "s.spz", cwd=tmp_path)
    assert code != 0
    assert "--gamma is for --kernel" in err
    for bad in ("wide", "-1", "nan"):
        code, _, err = here("train", "multilabel", train, "--kernel", "rbf", "--gamma", bad, "-o", "s.spz", cwd=tmp_path)
        assert (code, f"expected scale or a number above 0, got '{bad}'" in err) == (2, True)


def test_the_weights_that_are_shown_are_the_models(here: Here, labelled: Path, tmp_path: Path) -> None:
    """The score of a label of a model without pairs is its bias and its features' weights, as inspect tells them."""
    train = str(labelled / "weather-train.arff")
    assert here("train", "multilabel", train, "--edges", "none", "--scale", "none", "-o", "e.spz", "-q", cwd=tmp_path)[0] == 0
    _, text, _ = here("inspect", "e.spz", "--json", "--top", "9", cwd=tmp_path)
    X, _ = examples(40, 1)
    scores = MultiLabelMRF.load(tmp_path / "e.spz").predict_scores(X)
    for k, entry in enumerate(json.loads(text)["weights"]["labels"]):
        weights = dict(entry["positive"] + entry["negative"])
        own = entry["bias"] + X @ np.array([weights.get(f"f{j}", 0.0) for j in range(X.shape[1])])
        np.testing.assert_allclose(scores[:, k], own, atol=1e-9)


def test_report_is_one_page(here: Here, labelled: Path, tmp_path: Path) -> None:
    """The page has the certificate, a row per label, pairs and features; without data it leaves the scores out."""
    model, test = str(labelled / "m.spz"), str(labelled / "weather-test.arff")
    assert here("report", model, test, "-o", "p.html", "--title", "My labels", cwd=tmp_path)[0] == 0
    page = (tmp_path / "p.html").read_text()
    for word in ("My labels", "Certificate", "accuracy (Jaccard)", "storm cloud", "Pairs of labels", "Strongest features"):
        assert word in page
    assert page.index("<h3>In truth</h3>") < page.index("<h3>As predicted</h3>")
    assert "http" not in page.replace("http-equiv", "")
    assert here("report", model, "-o", "q.html", cwd=tmp_path)[0] == 0
    assert "accuracy (Jaccard)" not in (tmp_path / "q.html").read_text()


def test_the_help_names_every_option(here: Here, tmp_path: Path) -> None:
    """`train multilabel --help` explains each of them."""
    _, out, _ = here("train", "multilabel", "--help", cwd=tmp_path)
    assert all(option.opts[0] in out for option in train_command(LabelSets()).params if option.opts[0].startswith("--"))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX systems do")
def test_an_interrupted_run_ends_as_the_unbroken_one(shell: Shell, labelled: Path, tmp_path: Path) -> None:
    """Ctrl-C ends with 130 and a checkpoint; --resume gives the very weights of a run that nothing disturbed."""
    options = ["--max-iter", "150", "--tol", "0", "--check-every", "50", "--surrogate", "slack"]
    command = ["train", "multilabel", str(labelled / "weather-train.arff"), *options]
    child = subprocess.Popen(
        [*PROGRAM, *command, "-o", "broken.spz", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pipesize=4096,  # soon full: the run waits for its reader, and cannot end before the signal
        preexec_fn=hear_interrupts,
    )
    assert child.stdout is not None
    while '"pass"' not in child.stdout.readline():
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=1800)
    assert child.returncode == 130, err
    assert sorted(os.listdir(tmp_path)) == ["broken.spz.ckpt"]
    resumed = shell(*command, "-o", "broken.spz", "--resume", "-q")
    assert (resumed.returncode, resumed.stderr) == (0, ""), resumed.stderr
    assert shell(*command, "-o", "whole.spz", "-q").returncode == 0
    broken, whole = (MultiLabelMRF.load(tmp_path / f"{name}.spz") for name in ("broken", "whole"))
    assert broken.coef_.tobytes() == whole.coef_.tobytes()


@pytest.mark.slow
def test_yeast_from_the_shell(here: Here, data_dir: Path, tmp_path: Path) -> None:
    """On yeast, packed files and all, a few passes of slack rescaling give the accuracy that linear models are known for."""
    train, test = (str(data_dir / "multilabel_yeast" / f"yeast-{part}.arff.gz") for part in ("train", "test"))
    options = ("--surrogate", "slack", "-C", "0.01", "--max-iter", "5", "--tol", "0")
    assert here("train", "multilabel", train, *options, "-o", "y.spz", "-q", cwd=tmp_path)[0] == 0
    found = figures(here, "y.spz", test, cwd=tmp_path)
    assert found["n"] == 917
    assert 0.50 < float(str(found["accuracy"])) < 0.56
    assert 0.18 < float(str(found["label_loss"])) < 0.22


@pytest.mark.slow
def test_enron_corr_from_the_shell(here: Here, data_dir: Path, tmp_path: Path) -> None:
    """On the tree of Enron-corr every predicted set is closed: as many examples as lines, parents with their children."""
    folder = data_dir / "hierarchical_enron_corr"
    train, test = (str(folder / f"Enron_corr_{part}.arff.gz") for part in ("trainvalid", "test"))
    assert here("train", "multilabel", train, "--max-iter", "3", "-o", "e.spz", "-q", cwd=tmp_path)[0] == 0
    found = figures(here, "e.spz", test, cwd=tmp_path)
    assert float(str(found["micro_f1"])) > 0.5
    _, out, _ = here("predict", "e.spz", test, cwd=tmp_path)
    sets = [set(line.split("\t")) - {""} for line in out.split("\n")[:-1]]
    assert len(sets) == 660
    assert any("/" in label for labels in sets for label in labels)
    assert all(label.rpartition("/")[0] in labels for labels in sets for label in labels if "/" in label)
