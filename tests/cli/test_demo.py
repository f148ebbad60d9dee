"""Promises of `structpred demo`: a result without data of one's own, errors to look at, and the command to go on with."""

import re

import pytest
from cli_helpers import Shell


def test_what_there_is(shell: Shell) -> None:
    """Alone it lists what it shows; a mistyped name and a TEXT that cannot be used are refused before anything is trained."""
    for shown in (shell("demo").stderr, shell("demo", "--help").stdout):
        assert all(name in shown for name in ("tagger", "parser", "paths"))
    assert "paths takes no TEXT" in shell("demo", "paths", "Oslo").stderr
    assert "did you mean 'tagger'?" in shell("demo", "tager").stderr
    for name in ("tagger", "parser"):
        refused = shell("demo", name, "  ")
        assert (refused.returncode, "expected a sentence, got '  '" in refused.stderr) == (2, True)
        assert not refused.stdout


@pytest.mark.slow
def test_tagger(shell: Shell) -> None:
    """Names in brackets, one mistake with what speaks for it, which adds up; names of a TEXT; the last line goes on."""
    done = shell("demo", "tagger")
    assert (done.returncode, done.stderr) == (0, "")
    assert float(re.findall(r"F1 ([\d.]+) %", done.stdout)[0]) > 70
    wrong, right = (re.findall(rf"^{name}: (.*)$", done.stdout, re.MULTILINE)[0] for name in ("wrong", "right"))
    plain = [re.sub(r"\[| (PER|LOC|ORG)\]", "", line) for line in (wrong, right)]
    assert (wrong == right, plain[0] == plain[1]) == (False, True)
    *addends, total = (float(number) for number in re.findall(r"^([+-]\d\.\d{4}) ", done.stdout, re.MULTILINE))
    assert total > 0
    assert sum(addends) == pytest.approx(total, abs=3e-4)
    assert len(done.stdout.splitlines()) < 22
    assert "structpred train chain train.txt -o names.spz" in done.stdout.splitlines()[-1]
    named = shell("demo", "tagger", "Anna Keller left Oslo for the Harbour Bank.").stdout
    assert "[Anna Keller PER] left [Oslo LOC] for the [Harbour Bank ORG] ." in named


@pytest.mark.slow
def test_parser(shell: Shell) -> None:
    """A tree from words alone with its mistakes marked; the tree of a TEXT has one root, further left than all other words."""
    done = shell("demo", "parser")
    assert float(re.findall(r"UAS ([\d.]+) %", done.stdout)[0]) > 75
    assert re.search(r"<- wrong: [a-z:]+ of ('\w+'|no word)\n", done.stdout)
    assert "structpred train pipeline train.conllu -o en.spz" in done.stdout.splitlines()[-1]
    drawn = shell("demo", "parser", "The mayor opened a library in Leeds.").stdout.split("\n\n")[1].splitlines()
    assert [line.split()[0] for line in drawn] == ["The", "mayor", "opened", "a", "library", "in", "Leeds", "."]
    assert [line for line in drawn if not line.startswith(" ")] == ["opened     root"]


@pytest.mark.slow
def test_paths(shell: Shell) -> None:
    """SPO+ predicts worse costs than least squares and has less regret, as both lines show; the page to go on with is named."""
    done = shell("demo", "paths")
    rows = re.findall(r"^ *([\d.]+) % +([\d.]+) %", done.stdout, re.MULTILINE)
    (regret, error), (better, worse) = (map(float, row) for row in rows)
    assert better < regret
    assert worse > error
    assert "docs/howto/predict_then_optimise.md" in done.stdout.splitlines()[-1]
