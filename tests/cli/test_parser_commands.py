"""Promises of the command line for parsers on good input: what each command writes, where, and that options arrive."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import Shell, call
from treebank_helpers import others, treebank_text, without_heads

from structpred.cli.dependencies import results
from structpred.cli.kinds.dependencies import Dependencies
from structpred.cli.train import train_command
from structpred.io import read_treebank
from structpred.models import DependencyParser

Here = Callable[..., tuple[int, str, str]]


def figures(here: Here, *arguments: str, cwd: Path) -> dict[str, object]:
    """What `evaluate --json` prints."""
    code, out, err = here("evaluate", *arguments, "--json", cwd=cwd)
    assert code == 0, err
    found: dict[str, object] = json.loads(out)
    return found


def test_train_says_what_it_does_and_leaves_one_file(shell: Shell, treebanks: Path, tmp_path: Path) -> None:
    """Data, passes, both stages, held-out scores and the file are reported on stderr; stdout is empty; no checkpoint stays."""
    train, dev = str(treebanks / "train.conllu"), str(treebanks / "dev.conllu")
    done = shell("train", "parser", train, "--dev", dev, "-o", "m.spz", "--trainer", "bcfw", "--max-iter", "5", "--prune", "4")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    for said in ("80 sentences", "arcs: trained 5 passes", "relations: trained 5 passes", "trees: projective trees, one root"):
        assert said in done.stderr
    assert "% of the true arcs" in done.stderr
    assert "LAS" in done.stderr
    assert "rules of Universal Dependencies" in done.stderr
    arcs, relations = (line for line in done.stderr.splitlines() if ": trained 5 passes" in line)
    assert "gap" in arcs
    assert "gap" in relations
    assert os.listdir(tmp_path) == ["m.spz"]
    assert DependencyParser.load(tmp_path / "m.spz").reader_ == {"format": "conllu", "template": None}


def test_second_order(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """--order 2 is in the file, in what training says of candidates, and in `inspect`; prediction says what is proven."""
    train, dev = str(treebanks / "train.conllu"), str(treebanks / "dev.conllu")
    command = ("train", "parser", train, "-o", "m.spz", "--order", "2", "--prune", "3", "--max-iter", "1", "--max-bits", "10")
    code, _, err = here(*command, cwd=tmp_path)
    assert code == 0, err
    assert "pruning: 3 heads per word hold" in err
    assert DependencyParser.load(tmp_path / "m.spz").order == 2
    assert "siblings and grandparents" in here("inspect", "m.spz", cwd=tmp_path)[1]
    code, out, err = here("predict", "m.spz", dev, cwd=tmp_path)
    assert code == 0, err
    assert out.count("\n\n") == len(read_treebank(dev))
    assert "trees are proven best among the candidate arcs" in err


def test_quiet_says_nothing(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """With --quiet a run without trouble writes nothing to stdout or stderr."""
    train = str(treebanks / "train.conllu")
    assert here("train", "parser", train, "-o", "m.spz", "--max-iter", "1", "-q", cwd=tmp_path) == (0, "", "")


def test_events_tell_the_stage(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """With --json stdout holds start, the passes of arcs, those of relations, and an end with both certificates."""
    train = str(treebanks / "train.conllu")
    command = ("train", "parser", train, "-o", "m.spz", "--trainer", "bcfw", "--max-iter", "2", "--json")
    code, out, err = here(*command, cwd=tmp_path)
    assert code == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    assert [event.get("stage") for event in events] == [None, "arcs", "arcs", "relations", "relations", None]
    assert events[0]["sentences"] == 80
    for stage in ("arcs", "relations"):
        assert events[-1][stage]["dual"] <= events[-1][stage]["primal"]
        assert events[-1][stage]["proven"]
    assert "nsubj:pass" in events[-1]["labels"]


def test_predict_replaces_heads_and_relations_only(shell: Shell, treebanks: Path, tmp_path: Path) -> None:
    """Every byte but HEAD and DEPREL of words is kept; whether the file has heads or _, is packed or a stream, is the same."""
    text = (treebanks / "test.conllu").read_text()
    done = shell("predict", str(treebanks / "p.spz"), str(treebanks / "test.conllu"))
    assert done.returncode == 0, done.stderr
    assert others(done.stdout) == others(text)
    assert done.stdout != text
    assert shell("predict", str(treebanks / "p.spz"), "-", stdin=without_heads(text)).stdout == done.stdout
    (tmp_path / "packed.gz").write_bytes(gzip.compress(text.encode()))
    assert shell("predict", str(treebanks / "p.spz"), "packed.gz", "-o", "out.gz").stdout == ""
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode() == done.stdout


def test_predict_keeps_little_in_memory(here: Here, treebanks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data are parsed in batches, and the result does not depend on where they are cut."""
    model, data = str(treebanks / "p.spz"), str(treebanks / "test.conllu")
    _, whole, _ = here("predict", model, data, cwd=tmp_path)
    sizes = []
    predict = DependencyParser.predict

    def spied(self: DependencyParser, X: object, **options: object) -> object:
        sizes.append(len(X))  # type: ignore[arg-type]
        return predict(self, X, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(results, "BATCH", 7)
    monkeypatch.setattr(DependencyParser, "predict", spied)
    code, pieces, err = here("predict", model, data, cwd=tmp_path)
    assert (code, pieces) == (0, whole), err
    assert (max(sizes), sum(sizes)) == (7, 30)


def test_a_treebank_without_tags_is_noticed(treebanks: Path, tmp_path: Path) -> None:
    """A parser that learnt from tags warns where no word has one: the file, what is missing, and what to do."""
    lines = [line.split("\t") for line in (treebanks / "test.conllu").read_text().split("\n")]
    bare = ["\t".join([*row[:3], "_", *row[4:]]) if len(row) == 10 else row[0] for row in lines]
    (tmp_path / "bare.conllu").write_text("\n".join(bare))
    done = call("predict", str(treebanks / "p.spz"), "bare.conllu", cwd=tmp_path)
    assert (done.returncode, done.stdout.count("\n")) == (0, len(bare) - 1)
    assert done.stderr == (
        "warning: bare.conllu: expected words with upos, which the parser was trained with; got none, and trees are much worse "
        'without; tag the words first (in Python: dicts with "form" and "upos"), or train a parser on forms alone\n'
    )


def test_predict_as_json(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """One object per sentence: heads and relations, the k best trees in order, and marginals that sum to one for each word; a
    model of a margin has none."""
    model, data = str(tmp_path / "crf.spz"), str(treebanks / "test.conllu")
    training = ("--trainer", "oeg", "-C", "1", "--max-iter", "1", "-o", model, "-q")
    assert here("train", "parser", str(treebanks / "train.conllu"), *training, cwd=tmp_path)[0] == 0
    code, out, err = here("predict", model, data, "--json", "--kbest", "3", "--marginals", cwd=tmp_path)
    assert code == 0, err
    refused = here("predict", str(treebanks / "p.spz"), data, "--json", "--marginals", cwd=tmp_path)
    assert refused[0] == 2
    assert "not log-probabilities; train with --trainer lbfgs or oeg" in refused[2]
    entries = [json.loads(line) for line in out.splitlines()]
    trees = DependencyParser.load(model).predict(read_treebank(data))
    assert [entry["heads"] for entry in entries] == [tree.heads.tolist() for tree in trees]
    assert [entry["labels"] for entry in entries] == [tree.labels for tree in trees]
    for entry in entries:
        scores = [tree["score"] for tree in entry["kbest"]]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)
        np.testing.assert_allclose(np.sum(entry["marginals"], axis=1), 1.0, atol=1e-9)


def test_evaluate_agrees_with_predict(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """A model's figures are those of its predictions in a file; every promised figure is there; gold against gold is perfect."""
    model, data = str(treebanks / "p.spz"), str(treebanks / "test.conllu")
    assert here("predict", model, data, "-o", "out.conllu", cwd=tmp_path)[0] == 0
    found = figures(here, model, data, cwd=tmp_path)
    assert figures(here, "--gold", data, "out.conllu", cwd=tmp_path) == found
    assert {"uas", "las", "with_punctuation", "without_punctuation", "root_accuracy", "exact_match"} <= set(found)
    assert "recall" in found["non_projective"]  # type: ignore[operator]
    assert 0.7 < found["las"] <= found["uas"] <= 1  # type: ignore[operator]
    perfect = figures(here, "--gold", data, data, cwd=tmp_path)
    assert (perfect["uas"], perfect["las"], perfect["exact_match_labelled"]) == (1.0, 1.0, 1.0)


def test_the_rules_are_named_and_matter(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """Text and JSON name the rules; CoNLL-X leaves punctuation out and UD counts it."""
    model, data = str(treebanks / "p.spz"), str(treebanks / "test.conllu")
    for rules, name in (("ud", "Universal Dependencies"), ("conllx", "CoNLL-X"), ("conll07", "CoNLL-2007")):
        code, out, _ = here("evaluate", model, data, "--rules", rules, cwd=tmp_path)
        assert (code, f"Rules of {name}:" in out) == (0, True)
    ud, conllx = (figures(here, model, data, "--rules", rules, cwd=tmp_path) for rules in ("ud", "conllx"))
    assert (ud["rules"], conllx["rules"]) == ("Universal Dependencies", "CoNLL-X")
    assert conllx["n_scored"] == ud["n_words"] - conllx["n_punctuation"] < ud["n_scored"]  # type: ignore[operator]


def test_intervals_and_a_paired_test(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """Intervals hold the score; a better model is told from a worse one, given as a model or as a file of its predictions."""
    model, data, train = str(treebanks / "p.spz"), str(treebanks / "test.conllu"), str(treebanks / "train.conllu")
    (tmp_path / "t.txt").write_text("m.upos | direction\n")
    short = ("--max-iter", "1", "--unlabelled", "--templates", "t.txt", "-q")
    assert here("train", "parser", train, "-o", "bad.spz", *short, cwd=tmp_path)[0] == 0
    found = figures(here, model, data, "--intervals", "--against", "bad.spz", cwd=tmp_path)
    for metric, interval in found["intervals"].items():  # type: ignore[attr-defined]
        assert interval["low"] <= found[metric] <= interval["high"]  # type: ignore[operator]
    against = found["against"]
    assert isinstance(against, dict)
    assert set(against) == {"name", "uas"}  # the other one has no relations
    assert against["uas"]["difference"] > 0
    assert against["uas"]["p_value"] < 0.05
    assert here("predict", "bad.spz", data, "-o", "bad.conllu", cwd=tmp_path)[0] == 0
    again = figures(here, "--gold", data, model, "--against", "bad.conllu", cwd=tmp_path)["against"]
    assert again["uas"] == against["uas"]  # type: ignore[index]
    _, out, _ = here("evaluate", model, data, "--against", "bad.spz", "--intervals", cwd=tmp_path)
    assert "against bad.spz" in out
    assert "95 % intervals" in out


def test_inspect_tells_which_templates_matter(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """The norms of the templates are those of the weights' blocks, the strongest first; both certificates are shown."""
    model = str(treebanks / "p.spz")
    code, out, err = here("inspect", model, "--json", "--top", "3", cwd=tmp_path)
    assert code == 0, err
    found = json.loads(out)
    parser = DependencyParser.load(model)
    norms = [template["norm"] for template in found["weights"]["templates"]]
    assert len(norms) == len(parser.templates_) + 1
    assert norms == sorted(norms, reverse=True)
    assert np.square(norms).sum() == pytest.approx(float(np.square(parser.coef_.astype(float)).sum()), rel=1e-6)
    assert sum(template["share"] for template in found["weights"]["templates"]) == pytest.approx(1.0)
    assert found["relations"]["labels"] == parser.relations_.classes_.tolist()  # type: ignore[union-attr]
    _, text, _ = here("inspect", model, "--top", "3", cwd=tmp_path)
    assert "certificate of relations" in text
    assert f"the {len(norms) - 3} others" in text
    assert found["weights"]["templates"][0]["name"][:40] in text


def test_the_report_is_one_page(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """The page holds scores under named rules, relations and drawn sentences, and loads nothing from elsewhere."""
    model, data = str(treebanks / "p.spz"), str(treebanks / "test.conllu")
    code, out, err = here("report", model, data, "-o", "page.html", "--title", "A <title>", cwd=tmp_path)
    assert (code, out) == (0, ""), err
    page = (tmp_path / "page.html").read_text()
    for part in ("A &lt;title&gt;", "Rules of Universal Dependencies", "nsubj", "<svg", "Nothing is certified"):
        assert part in page
    assert "src=" not in page
    assert "<title>A <" not in page


@pytest.mark.slow
def test_options_reach_the_parser(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """Templates of one's own, the family of conjunctions, pruning, roots, kind of tree, relations and block sizes arrive."""
    train = str(treebanks / "train.conllu")
    (tmp_path / "t.txt").write_text("# tags\nh.upos m.upos | direction distance  # two templates\n\nm.form\n")

    def trained(*options: str) -> DependencyParser:
        code, _, err = here("train", "parser", train, "-o", "m.spz", "--max-iter", "1", *options, cwd=tmp_path)
        assert code == 0, err
        return DependencyParser.load(tmp_path / "m.spz")

    own = trained("--templates", "t.txt", "--multi-root", "--non-projective", "--unlabelled", "--seed", "3")
    assert list(map(str, own.templates_)) == ["h.upos m.upos | direction", "h.upos m.upos | distance", "m.form"]
    assert (own.single_root, own.projective_, own.relations_, own.random_state) == (False, False, None, 3)
    other = trained("--prune", "2", "--projective", "--max-bits", "7", "-C", "0.5", "--label-C", "0.25")
    assert (other.single_root, other.projective_, other.C, other.label_C) == (True, True, 0.5, 0.25)
    assert max(other.bits_) == 7
    assert other.kept_ is not None
    # the treebank has no XPOS, which the family does not use either
    assert len(trained("--conjunctions", "--max-bits", "8").templates_) == 507


def test_crossing_arcs(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """The kind of tree is told from the data or asked for; --projective at predict gives trees without crossing arcs."""
    data = str(treebanks / "crossing.conllu")
    command = ("train", "parser", data, "--max-iter", "3")
    assert "crossing arcs included" in here(*command, "-o", "free.spz", cwd=tmp_path)[2]
    err = here(*command, "-o", "flat.spz", "--projective", cwd=tmp_path)[2]
    left = DependencyParser.load(tmp_path / "flat.spz").left_out_
    assert left == read_treebank(data).forms.count("?")
    assert f"{left} of 60 sentences cross and were left out" in err
    for options, crosses in (((), True), (("--projective",), False)):
        code, out, _ = here("predict", "free.spz", data, *options, cwd=tmp_path)
        assert code == 0
        (tmp_path / "out.conllu").write_text(out)
        arcs = figures(here, "--gold", data, "out.conllu", cwd=tmp_path)["non_projective"]
        assert (arcs["n_predicted"] > 0) == crosses  # type: ignore[index]
    assert here("predict", "flat.spz", data, "--non-projective", "--multi-root", cwd=tmp_path)[0] == 0


def test_bad_sentences_are_left_out_if_asked(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """--on-error skip trains on the rest and says how many sentences were left out."""
    text = (treebanks / "train.conllu").read_text()
    (tmp_path / "bad.conllu").write_text(text.replace("\t0\troot\t", "\t3\troot\t", 1))
    command = ("train", "parser", "bad.conllu", "-o", "m.spz", "--max-iter", "1")
    assert here(*command, cwd=tmp_path)[0] == 1
    code, _, err = here(*command, "--on-error", "skip", cwd=tmp_path)
    assert code == 0, err
    assert "bad.conllu: 1 sentence with errors left out" in err
    assert "79 sentences" in err


def test_attributes_that_the_treebank_lacks_are_told(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """Templates of one's own that cannot be used are left out with a warning that says what there is."""
    (tmp_path / "t.txt").write_text("h.upos m.upos\nh.xpos m.xpos\n")
    command = ("train", "parser", str(treebanks / "train.conllu"), "-o", "m.spz", "--max-iter", "1", "--templates", "t.txt")
    code, _, err = here(*command, cwd=tmp_path)
    assert code == 0
    assert "1 of the templates were left out" in err


def test_defaults_are_the_estimators() -> None:
    """What the command line takes by default is what Python takes."""
    given = train_command(Dependencies()).make_context("parser", ["-", "-o", "m.spz"]).params
    defaults = DependencyParser().get_params()
    compared = set(given) & set(defaults) - {"checkpoint"}
    assert len(compared) == 19
    assert {name: given[name] for name in compared} == {name: defaults[name] for name in compared}
    assert not any(given[name] for name in ("multi_root", "unlabelled", "conjunctions"))


def test_other_formats_and_standard_input(shell: Shell, tmp_path: Path) -> None:
    """CoNLL-X is told from its lines, and the training data may come from standard input."""
    rows = [line for line in treebank_text(40, 5).split("\n") if not line.startswith("#") and "-2\t" not in line[:4]]
    rows = [line for line in rows if not line.startswith("2.1")]
    columns = [line.split("\t") for line in rows]
    text = "\n".join("\t".join([*c[:3], c[3].lower(), c[3], *c[5:8], "_", "_"]) if len(c) > 1 else "" for c in columns)
    done = shell("train", "parser", "-", "-o", "m.spz", "--max-iter", "2", stdin=text)
    assert done.returncode == 0, done.stderr
    assert "format conllx" in done.stderr
    assert DependencyParser.load(tmp_path / "m.spz").reader_["format"] == "conllx"


@pytest.mark.slow
def test_hungarian_from_the_shell(shell: Shell, data_dir: Path) -> None:
    """Five passes on Hungarian reach UAS 79 and LAS 75 on the test part; the predictions keep every other byte."""
    train, dev, test = (str(data_dir / "ud_hungarian_szeged" / f"hu_szeged-ud-{n}.conllu.gz") for n in ("train", "dev", "test"))
    done = shell("train", "parser", train, "--dev", dev, "-o", "hu.spz", "--max-iter", "5")
    assert done.returncode == 0, done.stderr
    assert "trees: all trees, crossing arcs included" in done.stderr
    found = json.loads(shell("evaluate", "hu.spz", test, "--json").stdout)
    assert found["n_words"] == 10448
    assert found["uas"] >= 0.79
    assert found["las"] >= 0.75
    out = shell("predict", "hu.spz", test).stdout
    assert others(out) == others(gzip.decompress(Path(test).read_bytes()).decode())
    assert json.loads(shell("evaluate", "--gold", test, "-", "--json", stdin=out).stdout) == found
