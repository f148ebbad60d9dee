"""Model files whose contents were changed, with right checksums: refused with ModelFileError, or sound models; nothing else."""

import copy
import inspect
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bending import bends, forged, write_plainly
from model_zoo import KINDS, Example
from sklearn.base import BaseEstimator, clone

from structpred.errors import DataError, ModelFileError
from structpred.models import load
from structpred.models.files import estimators
from structpred.storage import bundles as storage
from structpred.storage.bundles import Bundle, read_bundle, write_bundle
from structpred.storage.schema import Field, Record

HERE = Path(__file__).parent


class Zoo(dict[str, tuple[Example, Bundle]]):
    """A model of each kind and what its file holds, made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __missing__(self, name: str) -> tuple[Example, Bundle]:
        path, example = self.folder / f"{name}.spz", KINDS[name]()
        example.model.save(path)
        self[name] = example, read_bundle(path, kind="model")
        return self[name]


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    """A model of each kind that a test asks for."""
    return Zoo(tmp_path_factory.mktemp("zoo"))


def tags_in_front(b: Bundle) -> None:
    """The parser's word attributes grow, those of its model for pruning shrink; all weights are as many as their own ask for."""
    own, other = b.header["pruner"]["featurizer"]["tags"], b.header["featurizer"]["tags"]
    for part, tags, bits in (("pruner.", own[:1], b.header["pruner"]["bits"]), ("", [*"0123456789", *other], b.header["bits"])):
        for name in [name for name in b.arrays if name.startswith(f"{part}weights")]:
            del b.arrays[name]
        b.arrays[f"{part}weights"] = np.ones(sum(1 << k for k in bits) + 2 * (len(tags) + 2) ** 3, np.float32)
    own[1:] = []
    other[:0] = list("0123456789")


def longer(n: int) -> Any:
    """The weights are said to be n."""

    def apply(b: Bundle) -> None:
        b.arrays.pop("weights", None)
        one = {"indices": np.zeros(1, np.uint32), "values": np.ones(1, np.float32), "length": np.array([n])}
        b.arrays.update({f"weights.{name}": array for name, array in one.items()})

    return apply


def named(name: str, *keys: str) -> Any:
    """Replaces a value of the header."""
    value = json.loads(name)

    def apply(b: Bundle) -> None:
        table = b.header
        for key in keys[:-1]:
            table = table[key]
        table[keys[-1]] = value

    return apply


ATTACKS: dict[str, tuple[str, Any]] = {
    "other tags for pruning": ("parser", tags_in_front),
    "bits 2e9": ("parser", named("[2000000000]", "bits")),
    "bits 4e10": ("parser", lambda b: b.header.update(bits=[40_000_000_000] * len(b.header["bits"]))),
    "bits of pruning": ("parser", lambda b: b.header["pruner"].update(bits=[2**64] * len(b.header["pruner"]["bits"]))),
    "n_jobs 2^33": ("parser", named("8589934592", "settings", "n_jobs")),
    "n_jobs of a chain": ("chain_names", named("100000", "settings", "n_jobs")),
    "prune 2^63": ("parser", named("9223372036854775808", "settings", "prune")),
    "slots in two dimensions": ("parser", lambda b: b.arrays.update({"relations.slots": b.arrays["relations.slots"][None]})),
    "slots as floats": ("parser", lambda b: b.arrays.update({"relations.slots": b.arrays["relations.slots"].astype(float)})),
    "2^33 weights": ("chain_names", longer(2**33)),
    "2^62 weights": ("multilabel", longer(2**62)),
    "minus one weight": ("graph", longer(-1)),
    "2^40 weights of any oracle": ("structured", longer(2**40)),
    "infinitely many weights": ("chain_hashed", lambda b: b.arrays.update({"weights.length": np.array([np.inf])})),
    "n_bits 30": ("chain_hashed", named("30", "input", "header", "n_bits")),
    "n_bits 2^40": ("chain_hashed", named("1099511627776", "input", "header", "n_bits")),
    "no classes": ("chain_numeric", named("[]", "classes")),
    "no classes of nodes": ("graph", named("[]", "classes")),
    "classes twice": ("chain_numeric", lambda b: b.header["classes"].__setitem__(0, b.header["classes"][1])),
    "1e8 labels": ("multilabel", named("100000000", "n_labels")),
    "2^62 labels": ("hierarchical", named("4611686018427387904", "n_labels")),
    "edges beyond the labels": ("multilabel", lambda b: b.arrays["edges"].__setitem__((0, 1), 9)),
    "a bias that leaves no score finite": ("multilabel", named("1e308", "bias")),
    "a negative l1 norm": ("multilabel", named("-1", "regulariser", "settings", "mu")),
    "a regulariser with another one's settings": ("multilabel", named('{"class": "L2", "settings": {"mu": 1}}', "regulariser")),
    "weights that leave no score finite": ("structured", lambda b: b.arrays["weights"].__setitem__(0, 1e300)),
    "a shorter column": ("chain_templates", lambda b: b.texts.update({"input.column.0.": b.texts["input.column.0."][:2]})),
    "a column with doubles": ("chain_templates", lambda b: b.texts["input.column.0."].__setitem__(0, "cat")),
    "a scheme that the labels do not follow": ("chain_templates", named('"iob2"', "constraints", "scheme")),
    "constraints on lists": ("chain_templates", named('[[[1], "DET"]]', "constraints", "forbidden")),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_refused_before_anything_is_made(name: str, zoo: Zoo, tmp_path: Path) -> None:
    """Sizes, types and parts that do not agree are a ModelFileError that names the file, and 20 MB are never asked for."""
    kind, apply = ATTACKS[name]
    example, sound = zoo[kind]
    bundle = copy.deepcopy(sound)
    apply(bundle)
    write_bundle(tmp_path / "bent.spz", bundle, kind="model")
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r"bent\.spz: the contents are inconsistent"):
            load(tmp_path / "bent.spz", oracle=example.oracle)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_fields_bent_one_at_a_time(kind: str, zoo: Zoo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever one field, array or text becomes, loading and predicting raise nothing but our errors."""
    monkeypatch.setattr(storage, "write_atomic", write_plainly)
    example, sound = zoo[kind]
    every, rng = list(bends(sound)), np.random.default_rng(0)
    for k in rng.permutation(len(every))[:80].tolist():
        bundle = copy.deepcopy(sound)
        every[k].apply(bundle)
        for verdict in forged(tmp_path / "bent.spz", bundle, example, rng):
            assert verdict.fine, f"{every[k].what}: {verdict}"


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc for the memory in use")
@pytest.mark.parametrize("kind", KINDS)
def test_bends_and_mutations_in_little_memory(kind: str, tmp_path: Path) -> None:
    """Hundreds of bends and of random mutations in a process of its own with little memory: no signal, no foreign error.

    STRUCTPRED_MUTATIONS: how many mutations of each kind.
    """
    many = ["--bends", "400", "--mutations", os.environ.get("STRUCTPRED_MUTATIONS", "200"), "--room", "400"]
    command = [sys.executable, str(HERE / "bending.py"), kind, *many, "--trace", str(tmp_path / "trace")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr[-2000:]} at {(tmp_path / 'trace').read_text()}"
    counts = json.loads(done.stdout)["counts"]
    assert counts["refused"] > 100
    assert counts["works"] > 20


def undeclared(spec: Any, value: Any, where: str = "header") -> list[str]:
    """The fields of records that the declaration does not have."""
    spec = spec.spec if isinstance(spec, Field) else spec
    if isinstance(spec, Record) and isinstance(value, dict):
        own = [f"{where}.{name}" for name in value if name not in spec.fields]
        return own + [
            found
            for name in spec.fields
            if name in value
            for found in undeclared(spec.fields[name], value[name], f"{where}.{name}")
        ]
    choices = getattr(spec, "specs", ())
    return min((undeclared(choice, value, where) for choice in choices if isinstance(choice, Record)), key=len, default=[])


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_declared(kind: str, zoo: Zoo) -> None:
    """What is saved is what is declared: no field is written that the readers would not check."""
    bundle = zoo[kind][1]
    declared = estimators()[bundle.header["estimator"]]._HEADER
    assert undeclared(declared, bundle.header) == []


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_not_finite_are_not_saved(kind: str, zoo: Zoo, tmp_path: Path) -> None:
    """A model whose training diverged is refused by save, in words that say what to do; no file is left."""
    model = copy.copy(zoo[kind][0].model)
    for value in (np.nan, np.inf):
        model.coef_ = model.coef_.copy()
        model.coef_[-1] = value
        with pytest.raises(DataError, match=r"weights are not finite.*Smaller C"):
            model.save(tmp_path / "m.spz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_every_attribute_can_be_read(kind: str, zoo: Zoo, tmp_path: Path) -> None:
    """`dir` and each public property of a model, fitted, loaded or new: a value, or an AttributeError."""
    example = zoo[kind][0]
    example.model.save(tmp_path / "m.spz")
    for model in (example.model, load(tmp_path / "m.spz", oracle=example.oracle), clone(example.model)):
        listed = dir(model)
        for name in (name for name, _ in inspect.getmembers(type(model), lambda found: isinstance(found, property))):
            # `dir` of scikit-learn 1.7 and older lists what only a fitted model has
            assert hasattr(model, name) == (name in listed) or "__dir__" not in vars(BaseEstimator)
    assert len(example.model.group_norms_) == len(example.model.group_names_)


def test_a_setting_that_no_file_may_hold_is_refused_by_save(zoo: Zoo, tmp_path: Path) -> None:
    """What reading would refuse is not written: the error names the setting."""
    model = copy.copy(zoo["chain_names"][0].model)
    model.n_jobs = 10**6
    with pytest.raises(DataError, match=r"cannot be saved: .*n_jobs"):
        model.save(tmp_path / "m.spz")


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_another_length_never_reach_compiled_code(kind: str, zoo: Zoo) -> None:
    """Whatever replaces coef_, other than as many floats as the features ask for, is a DataError."""
    example = zoo[kind][0]
    model, w = copy.copy(example.model), example.model.coef_
    for other in (w[..., :2], w[:0], np.append(w, w), w[None], w.astype(np.int64)):
        model.coef_ = other.copy()
        with pytest.raises(DataError, match=f"expected {len(w)} (floats|rows of)"):
            example.predict(model)
