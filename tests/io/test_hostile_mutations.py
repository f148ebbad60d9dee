"""Mutations of sound files, given to every reader: data that hold together, or DataError; never another error."""

import random
from pathlib import Path

import pytest
from hostile_readers import FUZZ, READERS, check, mutated

from structpred.errors import DataError, ParameterError


def run(tmp_path: Path, name: str, times: int, seed: int) -> None:
    """Read so many mutations; each gives data that hold together, or an error of ours that names the file."""
    seeds, reader = READERS[name]
    path = tmp_path / "hostile"
    for sound in seeds:
        path.write_bytes(sound)
        check(reader(path))
    rng = random.Random(seed)
    read = 0
    for _ in range(times):
        path.write_bytes(mutated(rng, rng.choice(seeds)))
        problem = None
        try:
            check(reader(path))
        except (DataError, ParameterError) as error:
            problem = str(error)
        assert problem is None or "hostile" in problem
        read += problem is None
    assert read


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_few_mutations(tmp_path: Path, name: str) -> None:
    """A hundred mutations of a sound file: data or an error that names the file, and some are read."""
    run(tmp_path, name, 100, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_many_mutations(tmp_path: Path, name: str) -> None:
    """The same for STRUCTPRED_FUZZ mutations of each reader's files, a thousand unless it says otherwise."""
    run(tmp_path, name, FUZZ, 1)
