"""Files with -DOCSTART- lines: every command sees a token with its whole document."""

import json
import random
import runpy
from pathlib import Path

import pytest
from cli_helpers import Shell

from structpred.distributed import Shards
from structpred.errors import ParameterError
from structpred.export import export_predictor
from structpred.io.columns import read_columns
from structpred.io.templates.templates import Template, write_templates
from structpred.models import ChainLabeler


def documents(seed: int, n: int) -> str:
    """Documents of two sentences; the second begins with a name where the first has the word with a capital."""
    rng, blocks = random.Random(seed), []
    for _ in range(n):
        word, name = rng.choice(["rose", "may", "will"]), rng.random() < 0.5
        here, label = (word.title(), "B-PER") if name else (word, "O")
        blocks.append(f"-DOCSTART- O\n\nI O\nsaw O\n{here} {label}\n\n{word.title()} {label}\nleft O\n")
    return "\n".join(blocks)


@pytest.fixture
def model(shell: Shell, tmp_path: Path) -> Path:
    """A model whose templates look at documents, trained on a file of them."""
    templates = [Template(name, ((0, 0, name),)) for name in ("doc_case", "is_title")]
    write_templates([*templates, Template("doc_before", ((0, 0, "doc_before"),))], tmp_path / "t.json")
    (tmp_path / "train.txt").write_text(documents(0, 40))
    (tmp_path / "test.txt").write_text(documents(1, 20))
    done = shell("train", "chain", "train.txt", "--format", "columns", "--template", "t.json", "-o", "m.spz")
    assert done.returncode == 0, done.stderr
    return tmp_path / "m.spz"


def test_prediction_and_explanation(shell: Shell, model: Path) -> None:
    """Labels are those of Python on the whole file; the explanation of a sentence has the features that it has there."""
    data = read_columns(model.parent / "test.txt")
    found = [
        row.split()[-1] for row in shell("predict", "m.spz", "test.txt").stdout.split("\n") if row and "-DOCSTART-" not in row
    ]
    assert found == [label for row in ChainLabeler.load(model).predict(data) for label in row]
    assert found == data.column(-1)
    second = next(i for i, labels in enumerate(data.labels()) if labels == ["B-PER", "O"])
    said = json.loads(shell("explain", "m.spz", "test.txt", "--sample", str(second), "--json").stdout)
    assert said["output"] == ["B-PER", "O"]
    features = {one["feature"] for one in said["contributions"] if one["kind"] == "emission"}
    assert {"doc_case=first-all", "doc_before=saw"} <= features


def test_pieces_and_programs(shell: Shell, model: Path) -> None:
    """A file is cut in front of documents, so that its parts have the labels of the whole; so has the exported program."""
    path = model.parent / "test.txt"
    shards = Shards.of_file(path, 3, format="columns", label_column=1, n_columns=2)
    loaded, labeler = [shard.load().X for shard in shards], ChainLabeler.load(model)
    assert [corpus.text.startswith("-DOCSTART-") for corpus in loaded] == [True] * 3
    found = [label for corpus in loaded for row in labeler.predict(corpus) for label in row]
    assert found == [label for row in labeler.predict(read_columns(path)) for label in row]
    program = runpy.run_path(str(export_predictor(labeler, model.parent / "light.py").program))
    assert program["predict_file"](str(path)) == shell("predict", "m.spz", "test.txt").stdout
    with pytest.raises(ParameterError, match=r"cut at -DOCSTART- lines, .* give fewer pieces; ask for fewer shards"):
        Shards.of_file(path, 300, format="columns", label_column=1, n_columns=2)
