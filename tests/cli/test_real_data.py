"""Promises of the command line on the real data sets."""

import json
from pathlib import Path

import pytest
from cli_helpers import Shell

pytestmark = pytest.mark.slow


def test_conll2000_from_the_shell(shell: Shell, data_dir: Path) -> None:
    """Five passes of SGD on CoNLL-2000 reach F1 93.5, from the packed files, through train, predict and evaluate."""
    train, test = (str(data_dir / "conll2000" / f"{name}.txt.gz") for name in ("train", "test"))
    options = ["--format", "conll2000", "--template", "chunking", "--trainer", "sgd", "-C", "0.3", "--max-iter", "5"]
    done = shell("train", "chain", train, *options, "-o", "chunk.spz", "--dev-fraction", "0.1", "--seed", "0")
    assert done.returncode == 0, done.stderr
    figures = json.loads(shell("evaluate", "chunk.spz", test, "--json").stdout)
    assert figures["f1"] >= 0.935
    assert figures["n_tokens"] == 47377
    piped = shell("evaluate", "--pred", "-", "--json", stdin=shell("predict", "chunk.spz", test).stdout)
    assert json.loads(piped.stdout) == figures


def test_conll2000_in_crfsuites_format(shell: Shell, data_dir: Path, tmp_path: Path) -> None:
    """The same sentences as CRFsuite text, features made outside, train to a good F1 on the test part's halves."""
    from structpred.io import read_columns

    lines = []
    for sentence in read_columns(data_dir / "conll2000" / "test.txt.gz").sentences():
        padded = [("<s>", "<s>", ""), *sentence, ("</s>", "</s>", "")]
        for before, here, after in zip(padded, padded[1:], padded[2:], strict=False):
            names = [f"w={here[0]}", f"p={here[1]}", f"p-={before[1]}", f"p+={after[1]}", f"pp={before[1]}|{here[1]}"]
            lines.append("\t".join([here[2], *(name.replace("\\", "\\\\").replace(":", "\\:") for name in names)]))
        lines.append("")
    half = lines.index("", len(lines) // 2) + 1
    (tmp_path / "one.crf").write_text("\n".join(lines[:half]))
    (tmp_path / "two.crf").write_text("\n".join(lines[half:]))
    done = shell("train", "chain", "one.crf", "--format", "crfsuite", "--trainer", "sgd", "-C", "0.3", "-o", "m.spz")
    assert done.returncode == 0, done.stderr
    assert json.loads(shell("evaluate", "m.spz", "two.crf", "--json").stdout)["f1"] >= 0.88


def test_chunks_with_no_option_but_the_template(shell: Shell, data_dir: Path) -> None:
    """`train chain` as it stands reaches F1 93.7 on CoNLL-2000."""
    train, test = (str(data_dir / "conll2000" / f"{name}.txt.gz") for name in ("train", "test"))
    done = shell("train", "chain", train, "--format", "conll2000", "--template", "chunking", "-o", "m.spz")
    assert done.returncode == 0, done.stderr
    assert json.loads(shell("evaluate", "m.spz", test, "--json").stdout)["f1"] >= 0.937


def test_letters_with_no_option(data_dir: Path) -> None:
    """ChainLabeler as it stands, trained on one fold of the OCR letters, reads 80.5 per cent of the nine others on average."""
    from structpred.io import read_ocr
    from structpred.models import ChainLabeler

    words = read_ocr(data_dir / "ocr_letters" / "letter.data.gz")
    scores = []
    for fold in range(10):
        train, rest = words.select(words.folds == fold), words.select(words.folds != fold)
        scores.append(ChainLabeler(random_state=0).fit(train, train.letters).score(rest, rest.letters))
    assert sum(scores) / 10 >= 0.805


def test_ocr_letters_from_the_shell(shell: Shell, data_dir: Path) -> None:
    """Trained on nine folds of the OCR letters and judged on the tenth: letter accuracy at least 86 per cent."""
    data = str(data_dir / "ocr_letters" / "letter.data.gz")
    done = shell("train", "chain", data, "--format", "ocr", "--folds", "1-9", "-C", "0.1", "--max-iter", "10", "-o", "m.spz")
    assert done.returncode == 0, done.stderr
    figures = json.loads(shell("evaluate", "m.spz", data, "--fold", "0", "--json").stdout)
    assert figures["n_tokens"] == 4617
    assert figures["token_accuracy"] >= 0.86
