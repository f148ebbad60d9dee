"""Parser model files: everything comes back, pruning and relations included; what is damaged or does not fit is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parser_cases import corpus, plain

from structpred.errors import ModelFileError, ParameterError
from structpred.models import ChainLabeler, load
from structpred.models.parser.parser import DependencyParser
from structpred.objectives.part_losses import Hamming
from structpred.storage.bundles import read_bundle, write_bundle
from structpred.trainers.mira import MIRA

X, Y = corpus(40, 0, 0.3)
X_TEST, Y_TEST = corpus(30, 1, 0.3)
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pruned": {"prune": 2},
    "projective": {"projective": True, "single_root": False},
    "no relations": {"labelled": False},
    "random field": {"trainer": "lbfgs", "C": 1.0, "max_iter": 3, "label_C": 0.5},
    "own templates": {"templates": ["h.upos m.upos | distance", "m.form"], "max_bits": 9, "trainer": MIRA()},
    "certified": {"trainer": "bcfw", "C": 0.1, "tol": 0.3, "random_state": 4},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A sound file of a parser with pruning and relations."""
    path = tmp_path / "p.spz"
    DependencyParser(prune=3, max_iter=3).fit(X, Y).save(path)
    return path


def refused(path: Path, message: str) -> None:
    """Loading in each way raises ModelFileError with the file's name and the message."""
    for way in (DependencyParser.load, load):
        with pytest.raises(ModelFileError, match=message) as caught:
            way(path)
        assert path.name in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_everything_comes_back(name: str, tmp_path: Path) -> None:
    """Trees, relations, k best, marginals, certificates, histories and settings of the loaded model are the saved one's."""
    model = DependencyParser(**SETTINGS[name]).fit(X, Y)
    model.save(tmp_path / "m.spz")
    for loaded in (DependencyParser.load(tmp_path / "m.spz"), load(tmp_path / "m.spz")):
        assert isinstance(loaded, DependencyParser)
        assert loaded.coef_.tobytes() == model.coef_.tobytes()
        assert loaded.coef_.dtype == model.coef_.dtype
        assert plain(loaded.predict(X_TEST)) == plain(model.predict(X_TEST))
        rules: dict[str, Any] = {"fixed": [{1: 0}, *[None] * 29], "projective": True}
        assert plain(loaded.predict(X_TEST, **rules)) == plain(model.predict(X_TEST, **rules))
        if model.probabilistic_:
            for a, b in zip(loaded.predict_marginals(X_TEST), model.predict_marginals(X_TEST), strict=True):
                assert a.tobytes() == b.tobytes()
        for best, other in zip(loaded.predict_kbest(X_TEST, 3), model.predict_kbest(X_TEST, 3), strict=True):
            assert [(plain([tree]), score) for tree, score in best] == [(plain([tree]), score) for tree, score in other]
        for attribute in (
            "certificate_", "history_", "n_iter_", "stop_reason_", "converged_", "kept_", "projective_", "left_out_", "bits_",
            "probabilistic_", "label_certificate_", "label_history_", "templates_",
        ):  # fmt: skip
            assert getattr(loaded, attribute) == getattr(model, attribute)
        settings, saved = loaded.get_params(), model.get_params()
        for setting in (
            "C", "max_iter", "tol", "single_root", "max_bits", "prune", "labelled", "label_C", "random_state", "projective",
            "templates",
        ):  # fmt: skip
            assert settings[setting] == saved[setting]
        assert len(repr(loaded)) < 200
        assert loaded.score(X_TEST, Y_TEST) == model.score(X_TEST, Y_TEST)
        loaded.save(tmp_path / "again.spz")
        assert read_bundle(tmp_path / "again.spz", kind="model").header == read_bundle(tmp_path / "m.spz", kind="model").header


def test_a_loaded_model_can_be_fitted_again(tmp_path: Path) -> None:
    """A second fit of a loaded parser gives the weights of the first, to the last bit."""
    model = DependencyParser(prune=3, max_iter=3).fit(X, Y)
    model.save(tmp_path / "m.spz")
    again = load(tmp_path / "m.spz").fit(X, Y)
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert plain(again.predict(X_TEST)) == plain(model.predict(X_TEST))


def test_what_a_file_cannot_hold_is_asked_for_again(tmp_path: Path) -> None:
    """A loss object is not stored: the loaded model predicts, and a second fit asks for the loss."""
    model = DependencyParser(loss=Hamming(), max_iter=2).fit(X, Y)
    model.save(tmp_path / "m.spz")
    loaded = DependencyParser.load(tmp_path / "m.spz")
    assert plain(loaded.predict(X_TEST)) == plain(model.predict(X_TEST))
    with pytest.raises(ParameterError, match=r"Hamming .*give it again"):
        loaded.fit(X, Y)


def test_truncated_and_flipped_files_are_refused(file: Path) -> None:
    """Cut off anywhere, or with one bit changed in any of a hundred places."""
    data = bytearray(file.read_bytes())
    for length in (0, 1, 100, len(data) // 2, len(data) - 1):
        file.write_bytes(data[:length])
        refused(file, "truncated|damaged|empty|too short")
    for at in range(0, len(data), max(len(data) // 100, 1)):
        data[at] ^= 1 << at % 8
        file.write_bytes(data)
        refused(file, "damaged|truncated|checksum|valid|cannot be used")
        data[at] ^= 1 << at % 8


def test_a_chain_is_no_parser_and_the_other_way_round(file: Path, tmp_path: Path) -> None:
    """Swapped files are refused with both names."""
    with pytest.raises(ModelFileError, match="expected a ChainLabeler, the file holds a DependencyParser"):
        ChainLabeler.load(file)
    other = tmp_path / "c.spz"
    ChainLabeler(max_iter=1).fit([[{"w": "a"}, {"w": "b"}]], [["A", "B"]]).save(other)
    with pytest.raises(ModelFileError, match="expected a DependencyParser, the file holds a ChainLabeler"):
        DependencyParser.load(other)


def weights_key(bundle: Any, prefix: str) -> str:
    """The array that holds the weights of a part of the model."""
    return next(name for name in bundle.arrays if name in (f"{prefix}weights", f"{prefix}weights.values"))


TAMPERED: dict[str, Any] = {
    "estimator renamed": lambda b: b.header.update(estimator="ChainLabeler"),
    "no templates": lambda b: b.header.pop("templates"),
    "a template less": lambda b: b.header["templates"].pop(),
    "an unreadable template": lambda b: b.header["templates"].__setitem__(0, "h.form | far"),
    "a template that is a number": lambda b: b.header["templates"].__setitem__(0, 5),
    "a template of an attribute that is not there": lambda b: b.header["templates"].__setitem__(0, "h.xpos m.xpos"),
    "other bits": lambda b: b.header["bits"].__setitem__(0, b.header["bits"][0] + 1),
    "bits that are a text": lambda b: b.header.update(bits="many"),
    "a tag more": lambda b: b.header["featurizer"]["tags"].append("NEW"),
    "an unknown attribute": lambda b: b.header["featurizer"]["present"].append("smell"),
    "no featurizer": lambda b: b.header.update(featurizer=[]),
    "settings that are a list": lambda b: b.header.update(settings=[]),
    "no run": lambda b: b.header.pop("run"),
    "weights not finite": lambda b: b.arrays[weights_key(b, "")].__setitem__(0, np.nan),
    "weights too few": lambda b: b.arrays.update({weights_key(b, ""): b.arrays[weights_key(b, "")][:-1]}),
    "pruner's weights not finite": lambda b: b.arrays[weights_key(b, "pruner.")].__setitem__(0, np.inf),
    "pruner's weights gone": lambda b: b.arrays.pop(weights_key(b, "pruner.")),
    "pruner without its number": lambda b: b.header["settings"].update(prune=None),
    "pruner that is a text": lambda b: b.header.update(pruner="yes"),
    "relations' weights not finite": lambda b: b.arrays[weights_key(b, "relations.")].__setitem__(0, np.nan),
    "a relation more": lambda b: b.header["relations"]["classes"].extend(f"r{k}" for k in range(9)),
    "relations that are numbers": lambda b: b.header["relations"].update(classes=list(range(8))),
    "slots descending": lambda b: b.arrays.update({"relations.slots": b.arrays["relations.slots"][::-1].copy()}),
    "slots beyond the table": lambda b: b.arrays["relations.slots"].__setitem__(-1, 1 << 30),
    "a slot less": lambda b: b.arrays.update({"relations.slots": b.arrays["relations.slots"][1:]}),
    "slots gone": lambda b: b.arrays.pop("relations.slots"),
    "relation templates of what is not there": lambda b: b.header["relations"]["features"]["templates"].__setitem__(0, "m.xpos"),
    "relations that are a list": lambda b: b.header.update(relations=[1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TAMPERED)
def test_contents_that_do_not_fit_are_refused(file: Path, name: str) -> None:
    """Whole files with a right checksum and inconsistent contents are refused, not half loaded."""
    bundle = read_bundle(file, kind="model")
    TAMPERED[name](bundle)
    write_bundle(file, bundle, kind="model")
    with pytest.raises(ModelFileError, match="are inconsistent"):
        load(file)


def test_parts_of_another_model_are_refused(file: Path, tmp_path: Path) -> None:
    """The arrays of one model under the header of another one."""
    other = tmp_path / "o.spz"
    words = [[{"form": token["form"], "upos": token["upos"]} for token in tokens] for tokens in X]
    DependencyParser(prune=3, max_iter=3).fit(words, Y).save(other)
    mine, theirs = read_bundle(file, kind="model"), read_bundle(other, kind="model")
    mine.arrays.clear()
    mine.arrays.update(theirs.arrays)
    write_bundle(file, mine, kind="model")
    refused(file, "are inconsistent")
