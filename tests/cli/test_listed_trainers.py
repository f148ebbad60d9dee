"""Promises of the help pages on trainers: what a kind lists, it trains; what it cannot train, it does not list."""

import re
from pathlib import Path

import click
import pytest
from cli_helpers import call

from structpred.cli.kinds.kind import Kind, found_kinds
from structpred.cli.train import train_command
from structpred.objectives.names import regularisers
from structpred.trainers.names import trainers

KINDS = {kind.name: kind for kind in found_kinds() if kind.sample is not None}


def help_of(kind: Kind, name: str) -> str:
    """The help of an option of `structpred train KIND`, on one line."""
    command = train_command(kind)
    (option,) = (option for option in command.params if option.name == name)
    assert isinstance(option, click.Option)
    record = option.get_help_record(click.Context(command))
    assert record is not None
    return " ".join(record[1].split())


def listed_trainers(kind: Kind) -> set[str]:
    """The names in the help of --trainer."""
    text = help_of(kind, "trainer").partition(" * certified")[0]
    return {name for group in re.findall(r": ([a-z_*, 0-9]+)", text) for name in group.replace("*", "").split(", ")}


def listed_regularisers(kind: Kind) -> dict[str, set[str]]:
    """For each regulariser in the help of --regulariser the trainers that it is said to have."""
    text = help_of(kind, "regulariser")
    everyone = listed_trainers(kind)
    found = re.findall(r"(?:small: |, )(\w+)(?: \(trainers: ([\w, ]+)\))?(?=[,;])", text)
    return {name: set(some.split(", ")) if some else everyone for name, some in found}


def trained(kind: Kind, folder: Path, *options: str) -> bool:
    """Whether `structpred train KIND` works on the sample of the kind."""
    assert kind.sample is not None
    name, text, given = kind.sample
    (folder / name).write_text(text)
    return call("train", kind.name, name, "-o", "m.spz", "--max-iter", "1", *given, *options, cwd=folder).returncode == 0


def test_what_cannot_be_trained_is_not_listed() -> None:
    """Trainers of rows are in no help page, those of label sets in one; l1 is not said to be for trainers that refuse it."""
    for name, kind in KINDS.items():
        rows_only = {"sdca", "pegasos", "pragam_b"} | (set() if name == "multilabel" else {"marginal_bcfw"})
        assert listed_trainers(kind) == set(trainers()) - rows_only
    said = listed_regularisers(KINDS["chain"])
    assert said.keys() == regularisers().keys()
    assert said["l1"].isdisjoint({"sgd", "sdca", "pegasos"})
    assert {"owlqn", "bcfw", "proximal"} <= said["l1"]


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_trainer_that_is_listed_trains(name: str, tmp_path: Path) -> None:
    """Tried one by one, and so are those that are not listed, which are refused."""
    kind = KINDS[name]
    assert {trainer for trainer in trainers() if trained(kind, tmp_path, "--trainer", trainer)} == listed_trainers(kind)


@pytest.mark.slow
def test_every_trainer_that_is_listed_for_a_regulariser_takes_it(tmp_path: Path) -> None:
    """The same of all pairs, of a chain."""
    kind = KINDS["chain"]
    for regulariser, said in listed_regularisers(kind).items():
        pairs = [(trainer, ("--trainer", trainer, "--regulariser", regulariser)) for trainer in listed_trainers(kind)]
        assert {trainer for trainer, options in pairs if trained(kind, tmp_path, *options)} == said


def test_errors_list_what_the_help_lists(tmp_path: Path) -> None:
    """An unknown trainer, and one that does not fit the surrogate or the regulariser, are answered with trainers of this kind."""
    for name, kind in KINDS.items():
        if name == "decision":  # whose trainers depend on its loss
            continue
        assert kind.sample is not None
        file, text, given = kind.sample
        (tmp_path / file).write_text(text)
        for options in (
            ("--trainer", "nothing"),
            ("--trainer", "nothing,step=1"),
            ("--trainer", "lbfgs", "--surrogate", "margin"),
            ("--trainer", "sgd", "--regulariser", "l1"),
        ):
            done = call("train", name, file, "-o", "m.spz", *given, *options, cwd=tmp_path)
            named = set(re.findall(rf"\b(?:{'|'.join(trainers())})\b", done.stderr.partition(": ")[2].partition(", got")[0]))
            assert done.returncode == 2
            assert len(named) > 5
            assert named <= listed_trainers(kind)
