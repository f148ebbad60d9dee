"""--shards of parsers, label sets, vectors of words: the shell trains and predicts what Python does with the same shards."""

import gzip
import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import Shell, blanked, train_on_shards
from label_helpers import N_FEATURES

from structpred.cli.training import Events
from structpred.distributed import Shards, fit
from structpred.io.columns import read_columns
from structpred.io.multilabel.mulan import read_clus
from structpred.io.templates.templates import Template, load_templates, write_templates
from structpred.io.treebanks.reader import read_treebank
from structpred.models import DependencyParser, HierarchicalMultiLabel, MultiLabelMRF, load

# dask first: without it the folder of the tests of structpred.distributed is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
distributed = pytest.importorskip("distributed")


@pytest.mark.parametrize("trainer", ["mira", pytest.param("lbfgs", marks=pytest.mark.slow)])
def test_parsers_learnt_in_the_shell_are_those_of_fit(
    shell: Shell, client: Any, treebanks: Path, tmp_path: Path, trainer: str
) -> None:
    """`train parser --shards 2` gives the heads and relations of `fit` over the same shards; predict writes both."""
    options = ("--trainer", trainer, "--max-iter", "4", "--dev", "dev.conllu", "--json")
    done = train_on_shards(shell, client, treebanks, tmp_path / "m.spz", "parser", "train.conllu", *options)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    stages = [event["stage"] for event in events if event["event"] == "pass"]
    assert stages == ["arcs"] * 4 + ["relations"] * 4
    assert events[-1]["relations"]["passes"] == 4
    assert events[-1]["dev"]["las"] > 0.5
    for line in ("arcs: trained 4 passes", "relations: trained 4 passes", "LAS"):
        assert line in done.stderr
    made, model = load(tmp_path / "m.spz"), DependencyParser(trainer, C=0.01, max_iter=4)
    dev: Any = read_treebank(treebanks / "dev.conllu")
    fit(model, Shards.of_file(treebanks / "train.conllu", 2, format="conllu"), client=client, dev=dev)
    assert made.coef_.tobytes() == model.coef_.tobytes()
    assert model.relation_features_ is not None
    assert stages_of(made) == stages_of(model)
    assert made.relation_features_.slots.tolist() == model.relation_features_.slots.tolist()
    assert made.reader_ == {"format": "conllu", "template": None}
    output = ("--shards", "3", "--scheduler", client.scheduler.address, "-o", str(tmp_path / "{shard}.conllu"))
    assert shell("predict", str(tmp_path / "m.spz"), "test.conllu", *output, cwd=treebanks).returncode == 0
    whole = shell("predict", str(tmp_path / "m.spz"), "test.conllu", cwd=treebanks).stdout
    assert "".join((tmp_path / f"{k}.conllu").read_text() for k in range(3)) == whole
    assert "\tnsubj\t" in whole


@pytest.mark.slow
def test_heads_alone_and_on_shards(shell: Shell, client: Any, treebanks: Path, tmp_path: Path) -> None:
    """--unlabelled and --prune go with --shards as without."""
    options = ("--unlabelled", "--prune", "2", "--max-iter", "1", "--json")
    done = train_on_shards(shell, client, treebanks, tmp_path / "m.spz", "parser", "train.conllu", *options)
    model = load(tmp_path / "m.spz")
    assert model.relations_ is None
    assert f"pruning: 2 heads per word hold {100 * model.kept_:.2f} % of the true arcs" in done.stderr
    assert [json.loads(line)["stage"] for line in done.stdout.splitlines() if '"pass"' in line] == ["arcs"]


SETS = {
    "weather-train.arff": {"format": "arff", "labels": "weather.xml"},
    "train.svm": {"format": "libsvm", "label_names": ["0", "1", "2", "3"], "n_features": N_FEATURES},
    "tree-train.arff": {"format": "clus"},
}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", SETS)
def test_label_sets_learnt_in_the_shell_are_those_of_fit(
    shell: Shell, client: Any, labelled: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`train multilabel --shards 2` gives the weights of `fit` over the same shards, in every format of text."""
    options = ("--max-iter", "2", "--scale", "standard", "--dev", name)
    train_on_shards(shell, client, labelled, tmp_path / "m.spz", "multilabel", name, *options)
    monkeypatch.chdir(labelled)
    settings: dict[str, Any] = {"C": 0.1, "max_iter": 2, "tol": 0.01, "scale": "standard"}
    hierarchy = read_clus(name).hierarchy if name.startswith("tree") else None
    model: Any = HierarchicalMultiLabel(hierarchy=hierarchy, **settings) if hierarchy else MultiLabelMRF(**settings)
    whole, shards = (Shards.of_label_sets(name, n, **SETS[name]) for n in (1, 2))  # type: ignore[arg-type]
    fit(model, shards, client=client, dev=((data := whole[0].load().X).X, data.Y))
    made = load(tmp_path / "m.spz")
    assert made.coef_.tobytes() == model.coef_.tobytes()
    assert made.label_names_ == model.label_names_
    assert shell("evaluate", str(tmp_path / "m.spz"), name, cwd=labelled).returncode == 0


def test_a_hierarchy_beside_the_data(shell: Shell, client: Any, labelled: Path, tmp_path: Path) -> None:
    """--hierarchy goes with --shards: workers close the rows of their examples, in files whose labels all lines show alone."""
    (tmp_path / "edges.txt").write_text("1\t3\n")
    options = ("--hierarchy", str(tmp_path / "edges.txt"), "--max-iter", "1")
    train_on_shards(shell, client, labelled, tmp_path / "m.spz", "multilabel", "train.svm", *options)
    found = shell("predict", str(tmp_path / "m.spz"), "test.svm", cwd=labelled).stdout.splitlines()
    assert all("1" in line.split("\t") for line in found if "3" in line.split("\t"))


@pytest.mark.slow
def test_a_run_that_is_continued_ends_in_the_same_weights(shell: Shell, client: Any, treebanks: Path, tmp_path: Path) -> None:
    """--resume continues a run on shards from its checkpoint and store, in both stages, as for sequence labellers."""
    run = ("parser", "train.conllu", "--trainer", "oeg", "--checkpoint", str(tmp_path / "c"))
    train_on_shards(shell, client, treebanks, tmp_path / "one.spz", *run, "--max-iter", "1")
    assert (tmp_path / "c.store").is_dir()
    train_on_shards(shell, client, treebanks, tmp_path / "two.spz", *run, "--max-iter", "2", "--resume")
    train_on_shards(shell, client, treebanks, tmp_path / "whole.spz", *run[:-1], str(tmp_path / "other"), "--max-iter", "2")
    one, two, whole = (load(tmp_path / f"{name}.spz") for name in ("one", "two", "whole"))
    assert stages_of(two) == stages_of(whole)
    assert not set(stages_of(one)) & set(stages_of(whole))


def stages_of(parser: DependencyParser) -> list[bytes]:
    """The weights of heads and relations."""
    assert parser.relations_ is not None
    return [parser.coef_.tobytes(), parser.relations_.coef_.tobytes()]


@pytest.mark.parametrize("stage", [pytest.param("arcs", marks=pytest.mark.slow), "relations"])
def test_interrupted_in_either_stage(
    shell: Shell, client: Any, treebanks: Path, tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that an interrupted run names ends in the weights of one that was not, and leaves no files behind."""
    run = ("parser", "train.conllu", "--trainer", "oeg", "--max-iter", "2")
    train_on_shards(shell, client, treebanks, tmp_path / "whole.spz", *run)
    emit = Events.emit

    def stop(events: Events, event: str, **fields: Any) -> None:
        if fields.get("stage") == stage and fields["passes"] == 1:
            raise KeyboardInterrupt
        emit(events, event, **fields)

    with monkeypatch.context() as patch:
        patch.setattr(Events, "emit", stop)
        more = ("--shards", "2", "--scheduler", client.scheduler.address, "-o", str(tmp_path / "m.spz"))
        done = shell("train", *run, *more, cwd=treebanks)
    assert done.returncode == 130, done.stderr
    assert done.stderr.rstrip().endswith("--resume")
    train_on_shards(shell, client, treebanks, tmp_path / "m.spz", *run, "--resume")
    assert stages_of(load(tmp_path / "m.spz")) == stages_of(load(tmp_path / "whole.spz"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.spz", "whole.spz"]


# ------------------------------------------------------------------------------------------------ missing labels


def with_missing(kind: str, corpus: Path, labelled: Path, treebanks: Path) -> tuple[str, tuple[str, ...]]:
    """Data without some of their labels; and what to say to `train`."""
    if kind == "chain":
        text = blanked((corpus / "train.txt").read_text(), 0.3)[0].replace(" _\n", " ???\n")
        return text, ("chain", "--format", "conll2000", "--template", "chunking", "--missing", "???")
    if kind == "multilabel":
        return (labelled / "weather-train.arff").read_text().replace(",0,0\n", ",?,0\n"), ("multilabel", "--labels", "4")
    return (treebanks / "train.conllu").read_text().replace("\t0\troot\t0:root", "\t_\t_\t_"), ("parser",)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", ["chain", "multilabel", pytest.param("parser", marks=pytest.mark.slow)])
def test_labels_that_are_missing(
    shell: Shell, client: Any, corpus: Path, labelled: Path, treebanks: Path, tmp_path: Path, kind: str
) -> None:
    """lbfgs and owlqn learn from what is known, as without shards; other trainers are one line that says so."""
    text, options = with_missing(kind, corpus, labelled, treebanks)
    (tmp_path / "part").write_text(text)
    for more in (("lbfgs",), ("owlqn", "--regulariser", "l1")):
        done = train_on_shards(
            shell, client, tmp_path, tmp_path / "m.spz", *options, "part", "--max-iter", "2", "--trainer", *more
        )
        assert "missing" in done.stderr
        assert "local: the problem is not convex" in done.stderr
        model = load(tmp_path / "m.spz")
        assert not {"_", "???"} & set(getattr(getattr(model, "relations_", model), "classes_", ()))
    options = (*options, "part", "--shards", "2", "--scheduler", client.scheduler.address, "-o", "never.spz")
    for trainer in ("perceptron", "bcfw"):
        done = shell("train", *options, "--trainer", trainer)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        said = r"^error: .*: on shards lbfgs and owlqn learn from them, with the log loss; else train without shards, or leave .*"
        assert re.fullmatch(said, done.stderr.rstrip().splitlines()[-1]), done.stderr


# ------------------------------------------------------------------------------------------------ prediction


@pytest.mark.parametrize("data", ["weather-test.arff", "bare.arff"])
def test_parts_of_label_sets_are_what_predict_writes(
    shell: Shell, client: Any, labelled: Path, tmp_path: Path, data: str
) -> None:
    """The parts of `predict --shards 3`, one after the other, are what `predict` writes; labels may be missing."""
    model = str(labelled / "m.spz")
    options = ("--shards", "3", "--scheduler", client.scheduler.address, "-o", str(tmp_path / "{shard}.txt"))
    done = shell("predict", model, data, *options, cwd=labelled)
    assert done.returncode == 0, done.stderr
    parts = [(tmp_path / f"{k}.txt").read_text() for k in range(3)]
    assert all(parts)
    assert "".join(parts) == shell("predict", model, data, cwd=labelled).stdout


# ------------------------------------------------------------------------------------------------ what is refused


WRONG = {
    ("none.arff",): (1, "TRAIN none.arff: there is no such file"),
    ("-", "--format", "arff", "--labels", "4"): (2, "TRAIN must be a plain file, not -"),
    ("train.npz",): (2, "npz files cannot be cut: write the examples as ARFF or LIBSVM text, or give"),
    ("packed.svm",): (2, "a gzip file cannot be cut into byte ranges: unpack it"),
    ("weather-train.arff", "--encoding", "utf-16"): (2, "a file in utf-16 cannot be cut at ends of lines"),
    ("weather-train.arff", "--trainer", "marginal_bcfw"): (2, "MarginalBCFW cannot be trained on shards; trainers that can: "),
    ("weather-train.arff", "--labels", "none.xml"): (1, "none.xml: there is no such file"),
    ("train.svm", "--labels", "4"): (2, "--labels says which attributes of an ARFF file are labels"),
    ("train.svm", "--shards", "99"): (2, r"shard \d+ of 99 would be empty"),
    ("bad.svm",): (1, r"shard 1 \(.*\): .*bad\.svm: byte [\d,]+ \+ line 1200: expected index:value, got 'x'"),
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_what_label_sets_on_shards_do_not_take(shell: Shell, labelled: Path, arguments: tuple[str, ...]) -> None:
    """Files that cannot be cut or read, and trainers that shards do not take, are one line before any cluster is asked."""
    text = (labelled / "train.svm").read_text()
    (labelled / "packed.svm").write_bytes(gzip.compress(text.encode()))
    (labelled / "bad.svm").write_text(f"{text * 30}1 x\n")  # beyond what the shell looks at first
    code, message = WRONG[arguments]
    options = (*arguments, "--scheduler", "tcp://127.0.0.1:1", "-o", "never.spz")
    done = shell("train", "multilabel", *options, *(() if "--shards" in arguments else ("--shards", "2")), cwd=labelled)
    assert done.returncode == code, done.stderr
    assert re.search(message, done.stderr), done.stderr


def test_vectors_of_words_on_shards_and_in_a_program(shell: Shell, client: Any, corpus: Path, tmp_path: Path) -> None:
    """A chain with vec: templates is trained on shards; without the file its exported program writes what predict writes."""
    words = sorted({line.partition(" ")[0] for line in (corpus / "train.txt").read_text().split("\n") if line.strip()})
    (tmp_path / "vectors.txt").write_text("\n".join(f"{word} {np.sin(k):.3f} {k}" for k, word in enumerate(words[1:])))
    templates = [*load_templates("crfsuite"), *(Template(f"v[{k}]", ((0, k, "vec:vectors.txt"),)) for k in (0, -1))]
    write_templates(templates, tmp_path / "t.json")
    options = ("--format", "conll2000", "--template", str(tmp_path / "t.json"), "--trainer", "lbfgs", "--max-iter", "10")
    train_on_shards(shell, client, tmp_path, tmp_path / "m.spz", "chain", str(corpus / "train.txt"), *options)
    (tmp_path / "vectors.txt").unlink()
    shell("export", "m.spz", "-o", "light.py").check_returncode()
    program, test = runpy.run_path(str(tmp_path / "light.py")), str(corpus / "test.txt")
    done = shell("predict", "m.spz", test)
    assert program["predict_file"](test) == done.stdout
    assert shell("evaluate", "m.spz", test).returncode == 0
    rows = [[tuple(row[:2]) for row in sentence] for sentence in read_columns(test).sentences()]
    assert "\n".join(label for own in program["predict"](rows) for label in own.tolist()) == "\n".join(
        line.rpartition(" ")[2] for line in done.stdout.split("\n") if line
    )
