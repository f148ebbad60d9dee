"""The store of a run: what is read is what was written, to the last bit, or an error that names the file."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

# dask first: without it the folder of these tests is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
pytest.importorskip("distributed")

from structpred.distributed.store import Store, run_folder
from structpred.errors import CheckpointError


def test_vectors_come_back(tmp_path: Path) -> None:
    """Also an empty one, and one that is not contiguous; nothing but the files asked for is left."""
    store = Store(tmp_path)
    for n, vector in enumerate([np.array([1.5, -0.0, np.inf]), np.empty(0), np.arange(6.0)[::2]]):
        store.write(f"weights.{n}", {"vector": vector})
        assert store.read(f"weights.{n}")["vector"].tobytes() == vector.tobytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["weights.0", "weights.1", "weights.2"]
    for start, part in ((0, np.arange(2.0)), (2, np.arange(2.0, 5.0))):
        store.write(f"sum.a.{start}", {"vector": part})
    assert store.read_sum("a", [2, 5]).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("change", ["cut", "bit", "empty", "none"])
def test_damaged_vectors_are_refused(tmp_path: Path, change: str) -> None:
    """Cut short, one bit changed, empty, or not there."""
    store, path = Store(tmp_path), tmp_path / "weights.1"
    store.write("weights.1", {"vector": np.arange(100.0)})
    data = bytearray(path.read_bytes())
    if change == "bit":
        data[400] ^= 1
    path.write_bytes(data[:-8] if change == "cut" else b"" if change == "empty" else data)
    if change == "none":
        path.unlink()
    with pytest.raises(CheckpointError, match=r"weights\.1: "):
        store.read("weights.1")


def failed(place: Path, *names: str, resume: bool = False) -> Path:
    """The folder of a run that wrote these files, and was stopped."""
    with contextlib.suppress(KeyboardInterrupt), run_folder(place, resume=resume, keep=True) as folder:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()
        raise KeyboardInterrupt
    return folder


@pytest.mark.parametrize("there", [False, True])
def test_a_run_that_fails_before_its_first_round_leaves_nothing(tmp_path: Path, there: bool) -> None:
    """What it wrote goes, and the folder that was made for it; a folder that was there stays."""
    place = tmp_path / "store"
    if there:
        place.mkdir()
        (place / "notes").touch()
    failed(place, "rows.0", "common.0", "state.0.0")
    assert sorted(tmp_path.rglob("*")) == ([place, place / "notes"] if there else [])


@pytest.mark.parametrize("stage", ["", "further/run-01234567/"])
def test_closed_rounds_are_kept(tmp_path: Path, stage: str) -> None:
    """After a round of any stage a run that fails leaves its folder, and resume finds it."""
    folder = failed(tmp_path / "store", f"{stage}common.1")
    assert failed(tmp_path / "store", resume=True) == folder
    assert (folder / f"{stage}common.1").exists()
