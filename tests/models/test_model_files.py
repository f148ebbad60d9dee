"""Model files: what is damaged, newer, unsafe or another model's is refused; a full disk keeps the old file."""

import errno
import os
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labeler_cases import SENTENCES, Y, plain

from structpred.errors import ModelFileError, ParameterError, StorageError
from structpred.models import ChainLabeler, StructuredPredictor, load
from structpred.models.bundles import pack_weights, unpack_weights
from structpred.objectives.part_losses import LabelCosts
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.storage import atomic
from structpred.storage.bundles import read_bundle, write_bundle
from structpred.trainers.corrective import Corrective
from structpred.trainers.sgd import SGD

X = [[{"w": w} for w in words] for words in SENTENCES]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A sound model file."""
    path = tmp_path / "m.spz"
    ChainLabeler(max_iter=20, random_state=3).fit(X, Y).save(path)
    return path


def refused(path: Path, message: str) -> None:
    """Loading in each way raises ModelFileError with the file's name and the message."""
    for way in (ChainLabeler.load, load):
        with pytest.raises(ModelFileError, match=message) as caught:
            way(path)
        assert path.name in str(caught.value)


def test_truncated_files_are_refused(file: Path) -> None:
    """A file cut off anywhere is refused, and the message says what probably happened."""
    data = file.read_bytes()
    for length in (0, 1, 100, len(data) // 2, len(data) - 1):
        file.write_bytes(data[:length])
        refused(file, "truncated|damaged|empty|too short")


def test_flipped_bits_are_refused(file: Path) -> None:
    """One flipped bit, in any of two hundred places spread over the file, is noticed."""
    data = bytearray(file.read_bytes())
    for at in range(0, len(data), max(len(data) // 200, 1)):
        data[at] ^= 1 << at % 8
        file.write_bytes(data)
        refused(file, "damaged|truncated|checksum|valid|cannot be used")
        data[at] ^= 1 << at % 8


def test_files_of_a_newer_version_are_refused(file: Path) -> None:
    """A newer format version is refused with the advice to update."""
    write_bundle(file, read_bundle(file, kind="model"), kind="model", format_version=2)
    refused(file, "format version 2.*update structpred")


def test_an_unknown_estimator_is_refused(file: Path) -> None:
    """An estimator that this version does not know is named."""
    bundle = read_bundle(file, kind="model")
    bundle.header["estimator"] = "TreeParser"
    write_bundle(file, bundle, kind="model")
    with pytest.raises(ModelFileError, match=r"unknown estimator 'TreeParser'.*newer"):
        load(file)


class Bomb:
    """Unpickling it would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_pickles_are_refused_and_never_run(file: Path, tmp_path: Path) -> None:
    """A pickle in place of a model, or inside of one, is refused; its code does not run."""
    bomb = pickle.dumps(Bomb(tmp_path / "exploded"))
    sound = file.read_bytes()
    file.write_bytes(bomb)
    refused(file, "pickle")
    file.write_bytes(sound)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("data.pkl", bomb)
    refused(file, "damaged|packed again")
    with zipfile.ZipFile(file) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name in entries:
            archive.writestr(name, bomb if name == "weights.safetensors" else entries[name])
    refused(file, "damaged|packed again")
    assert not (tmp_path / "exploded").exists()


def test_another_estimators_file_is_refused(file: Path, tmp_path: Path) -> None:
    """ChainLabeler.load and StructuredPredictor.load refuse each other's files, naming both."""
    with pytest.raises(ModelFileError, match="expected a StructuredPredictor, the file holds a ChainLabeler"):
        StructuredPredictor.load(file, AssignmentOracle())
    other = tmp_path / "s.spz"
    StructuredPredictor(MulticlassOracle()).fit([np.eye(2), np.eye(2)], [[0], [1]], [(2,), (2,)]).save(other)
    with pytest.raises(ModelFileError, match="expected a ChainLabeler, the file holds a StructuredPredictor"):
        ChainLabeler.load(other)


def test_a_structured_model_needs_its_oracle(tmp_path: Path) -> None:
    """Without its oracle, or with another one, a StructuredPredictor is refused with the call that would do."""
    path = tmp_path / "s.spz"
    StructuredPredictor(MulticlassOracle()).fit([np.eye(2), np.eye(2)], [[0], [1]], [(2,), (2,)]).save(path)
    for oracle in (None, AssignmentOracle()):
        with pytest.raises(ParameterError, match=r"MulticlassOracle; give load\(path, oracle=MulticlassOracle\(\)\)"):
            load(path, oracle=oracle)
    assert isinstance(load(path, oracle=MulticlassOracle()), StructuredPredictor)


def test_a_full_disk_keeps_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full at any step of saving raises StorageError; the old file loads, and nothing is left next to it."""
    model = ChainLabeler(max_iter=1).fit(X[:3], Y[:3])
    old = file.read_bytes()
    for where in ("created", "written"):

        def full(name: str, where: str = where) -> None:
            if name == where:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(atomic, "step", full)
        with pytest.raises(StorageError, match="disk is full; the old file is kept"):
            model.save(file)
        assert file.read_bytes() == old
        assert [entry.name for entry in file.parent.iterdir()] == [file.name]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a limit on the size of files")
def test_a_real_limit_of_the_system_keeps_the_old_file(file: Path, in_child: Callable[[Callable[[], None]], None]) -> None:
    """The same with the system's own refusal: no file may grow beyond a few bytes."""
    import resource

    old, model = file.read_bytes(), ChainLabeler(max_iter=1).fit(X[:3], Y[:3])

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        with pytest.raises(StorageError, match="larger than the system allows; the old file is kept"):
            model.save(file)

    in_child(limited)
    assert file.read_bytes() == old


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    """Saving into a missing folder, or over a folder, says so."""
    model = ChainLabeler(max_iter=1).fit(X, Y)
    with pytest.raises(StorageError, match="the folder does not exist"):
        model.save(tmp_path / "none" / "m.spz")
    with pytest.raises(ValueError, match="it is a folder"):
        model.save(tmp_path)
    for error in (ModelFileError, FileNotFoundError):
        with pytest.raises(error, match=r"none\.spz: cannot be read: No such file"):
            load(tmp_path / "none.spz")


def test_contents_that_do_not_fit_are_refused(file: Path) -> None:
    """Whole files with inconsistent contents (other sizes, NaN weights, missing parts) are refused, not half loaded."""

    def tamper(change: Any) -> None:
        bundle = read_bundle(original, kind="model")
        change(bundle)
        write_bundle(file, bundle, kind="model")
        refused(file, "are inconsistent")

    original = file.with_name("original.spz")
    original.write_bytes(file.read_bytes())
    key = next(name for name in read_bundle(file, kind="model").arrays if name in ("weights", "weights.values"))
    tamper(lambda bundle: bundle.header.pop("classes"))
    tamper(lambda bundle: bundle.header["classes"].append("one more, and many others"))
    tamper(lambda bundle: bundle.texts.clear())
    tamper(lambda bundle: bundle.header["input"].update(kind="audio"))
    tamper(lambda bundle: bundle.arrays[key].__setitem__(0, np.nan))
    tamper(lambda bundle: bundle.arrays.update({key: bundle.arrays[key][:-1]}))
    tamper(lambda bundle: bundle.header.pop("run"))


def test_settings_come_back(tmp_path: Path) -> None:
    """Numbers, names and our own trainer objects come back with their settings."""
    settings: dict[str, Any] = {
        "trainer": Corrective(corners=8),
        "C": np.float64(0.5),
        "max_iter": 7,
        "tol": 0.01,
        "min_count": 2,
        "random_state": 5,
    }
    ChainLabeler(**settings).fit(X, Y).save(tmp_path / "m.spz")
    loaded = ChainLabeler.load(tmp_path / "m.spz").get_params()
    assert vars(loaded.pop("trainer")) == vars(settings.pop("trainer"))
    assert {name: loaded[name] for name in settings} == settings
    ChainLabeler(trainer=SGD(averaged=False), random_state=np.random.RandomState(0)).fit(X, Y).save(tmp_path / "n.spz")
    assert ChainLabeler.load(tmp_path / "n.spz").trainer.averaged is False
    assert ChainLabeler.load(tmp_path / "n.spz").random_state is None


def test_what_a_file_cannot_hold_is_asked_for_again(tmp_path: Path) -> None:
    """A loss object is not stored: the loaded model predicts, and a second fit asks for the loss instead of taking another."""
    model = ChainLabeler(loss=LabelCosts(1.0 - np.eye(4))).fit(X, Y)
    model.save(tmp_path / "m.spz")
    loaded = ChainLabeler.load(tmp_path / "m.spz")
    assert plain(loaded.predict(X)) == plain(model.predict(X))
    with pytest.raises(ParameterError, match=r"LabelCosts .*give it again"):
        loaded.fit(X, Y)


def test_sparse_and_dense_weights_come_back_alike() -> None:
    """Weights stored as indices and values, and weights stored as they are, come back bit for bit."""
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        for share in (0.0, 0.01, 1.0):
            w = np.where(rng.random(1000) < share, rng.normal(size=1000), 0.0).astype(dtype)
            back = unpack_weights(pack_weights(w), 1000)
            assert (back.dtype, back.tobytes()) == (w.dtype, w.tobytes())
    assert "weights.indices" in pack_weights(np.zeros(10))
