"""The store of a run: what is read is what was written, to the last bit, or an error that names the file."""

from pathlib import Path

import numpy as np
import pytest

# dask first: without it the folder of these tests is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
pytest.importorskip("distributed")

from structpred.distributed.store import Store
from structpred.errors import CheckpointError


def test_vectors_come_back(tmp_path: Path) -> None:
    """Also an empty one, and one that is not contiguous; nothing but the files asked for is left."""
    store = Store(tmp_path)
    for n, vector in enumerate([np.array([1.5, -0.0, np.inf]), np.empty(0), np.arange(6.0)[::2]]):
        store.write_vector(f"weights.{n}", vector)
        assert store.read_vector(f"weights.{n}").tobytes() == vector.tobytes()
        room = np.zeros(len(vector) + 2)
        store.read_vector(f"weights.{n}", room[1:-1])
        assert room.tolist() == [0.0, *vector, 0.0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["weights.0", "weights.1", "weights.2"]


@pytest.mark.parametrize("change", ["cut", "bit", "empty", "none"])
def test_damaged_vectors_are_refused(tmp_path: Path, change: str) -> None:
    """Cut short, one bit changed, empty, or not there."""
    store, path = Store(tmp_path), tmp_path / "weights.1"
    store.write_vector("weights.1", np.arange(100.0))
    data = bytearray(path.read_bytes())
    if change == "bit":
        data[400] ^= 1
    path.write_bytes(data[:-8] if change == "cut" else b"" if change == "empty" else data)
    if change == "none":
        path.unlink()
    for room in (None, np.zeros(100)):
        with pytest.raises(CheckpointError, match=r"weights\.1: (it was truncated or damaged|cannot be read)"):
            store.read_vector("weights.1", room)
