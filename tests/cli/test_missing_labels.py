"""Files in which labels are missing, in the shell: training, scores, the option, and what is said of them."""

import json
import random

import pytest
from cli_helpers import blanked
from label_helpers import arff_text, examples
from treebank_helpers import treebank_text


@pytest.mark.parametrize("trainer", ["bcfw", "lbfgs"])
def test_a_column_file_without_half_of_its_labels(shell, corpus, tmp_path, trainer):
    """It trains as any other, says how many labels are missing, has no label `_`, and evaluate leaves the missing out."""
    text, n = blanked((corpus / "train.txt").read_text(), 0.5)
    (tmp_path / "half.txt").write_text(text)
    (tmp_path / "test.txt").write_text((corpus / "test.txt").read_text())
    command = ("train", "chain", "half.txt", "--format", "conll2000", "--template", "chunking", "--trainer", trainer)
    done = shell(*command, "--max-iter", "10", "-o", "m.spz")
    assert done.returncode == 0, done.stderr
    total = sum(bool(line.strip()) for line in text.split("\n"))
    assert f"{n} of {total:,} labels are missing" in done.stderr
    assert "local: the problem is not convex" in done.stderr
    assert json.loads(shell("evaluate", "m.spz", "test.txt", "--json").stdout)["token_accuracy"] > 0.8
    scored = shell("evaluate", "m.spz", "half.txt", "--json")
    assert json.loads(scored.stdout)["n_tokens"] == total - n
    assert f"{n} of {total} labels are missing, which are left out of the scores" in scored.stderr
    assert "_" not in {line.split()[-1] for line in shell("predict", "m.spz", "half.txt").stdout.split("\n") if line.strip()}


def test_the_mark_can_be_another_one_or_none(shell, corpus, tmp_path):
    """--missing '' takes `_` as a label; --missing TEXT takes another text for the mark."""
    text, _ = blanked((corpus / "train.txt").read_text(), 0.5)
    command = ("train", "chain", "--format", "conll2000", "--template", "chunking", "--max-iter", "1", "-o", "m.spz")
    (tmp_path / "a.txt").write_text(text)
    done = shell(*command, "a.txt", "--missing", "")
    assert done.returncode == 0
    assert "missing" not in done.stderr
    (tmp_path / "b.txt").write_text(text.replace(" _\n", " ???\n"))
    assert "labels are missing" in shell(*command, "b.txt", "--missing", "???").stderr


def test_label_sets_without_some_of_their_labels(here, tmp_path):
    """`?` in ARFF is a missing label, with a hierarchy, too; predict takes such files, evaluate says what is missing."""
    X, Y = examples(40, 0)
    rng = random.Random(0)
    some = [["?" if rng.random() < 0.4 else k for k in row] for row in Y.tolist()]
    n = sum(row.count("?") for row in some)
    rows = "".join(",".join(map(str, [*x, *row])) + "\n" for x, row in zip(X.tolist(), some, strict=True))
    (tmp_path / "some.arff").write_text(arff_text(X[:0], Y[:0]).rstrip("\n") + "\n" + rows)
    (tmp_path / "tree.txt").write_text("rain\tstorm cloud\n")
    for more, said in (((), f"{n} of 160 labels"), (("--hierarchy", "tree.txt"), "labels are missing")):
        command = ("train", "multilabel", "some.arff", "--labels", "4", "--max-iter", "4", *more, "-o", "m.spz")
        code, _, err = here(*command, cwd=tmp_path)
        assert code == 0, err
        assert said in err
        assert "local: the problem is not convex" in err
    assert len(here("predict", "m.spz", "some.arff", cwd=tmp_path)[1].splitlines()) == 40
    code, _, err = here("evaluate", "m.spz", "some.arff", cwd=tmp_path)
    assert code == 1
    assert "some.arff: example 1: label " in err
    assert "only training data may lack labels" in err


def test_a_treebank_without_some_of_its_heads(shell, tmp_path):
    """`train parser` trains on it and says how many heads are missing; held-out trees must be whole."""
    rng, lines, n = random.Random(0), [], 0
    for line in treebank_text(60, 0).split("\n"):
        fields = line.split("\t")
        if len(fields) == 10 and fields[0].isdigit() and rng.random() < 0.3:
            fields[6], fields[7], n = "_", "_", n + 1
        lines.append("\t".join(fields))
    (tmp_path / "some.conllu").write_text("\n".join(lines))
    done = shell("train", "parser", "some.conllu", "--max-iter", "2", "-o", "p.spz")
    assert done.returncode == 0, done.stderr
    assert f"{n} of " in done.stderr
    assert "heads are missing" in done.stderr
    done = shell("train", "parser", "some.conllu", "--dev", "some.conllu", "-o", "p.spz")
    assert done.returncode == 1
    assert "held-out trees are compared with whole ones" in done.stderr
