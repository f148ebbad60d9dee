"""An exported chain labels as the model does, bit for bit: for every kind of input, at ties, and under constraints."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from light_programs import full_of_ties, program_of
from scipy import sparse

from structpred.errors import InfeasibleError
from structpred.io.templates.templates import Template, load_templates, read_template
from structpred.models import ChainLabeler
from structpred.models.chain.constraints import ChainConstraints

LABELS = ("B-X", "I-X", "O", "B-Y", "I-Y")
MACROS = "U1:%x[-2,0]\nU2:%x[-1,0]/%x[0,1]\nU:%x[-1,1]\nU:%x[1,1]\nU3\nB\n"


def rows(rng: np.random.Generator) -> list[tuple[str, str]]:
    """A sentence of one to twelve rows; words with capitals, digits and other scripts."""
    words = ["Ab", "ab", "A-1", "b7b7", "éß", "x", "abcde", "日本", "ABC"]
    return [(words[rng.integers(9)], "NVD"[rng.integers(3)]) for _ in range(rng.integers(1, 13))]


def dicts(rng: np.random.Generator) -> list[dict[str, Any]]:
    """A sentence of feature dicts: strings, numbers, lists, nested dicts, zeros, and features that come twice."""
    return [
        {"w": "abc"[rng.integers(3)], "n": float(rng.normal()), "0": 0, "on": bool(rng.integers(2)),
         "l": ["p", "q", "p"][: rng.integers(4)], "d": {"w": "z", "e": {"f": 2}}, "s": {"b", "a"}}
        for _ in range(rng.integers(1, 13))
    ]  # fmt: skip


def strings(rng: np.random.Generator) -> list[list[str]]:
    """A sentence of feature strings in any order."""
    return [[f"f{k}" for k in rng.permutation(12)[: rng.integers(0, 6)]] for _ in range(rng.integers(1, 13))]


def arrays(rng: np.random.Generator) -> Any:
    """A sentence as an array with zeros."""
    return rng.integers(-2, 3, size=(rng.integers(1, 13), 6)) * 0.1


def dicts_with_arrays(rng: np.random.Generator) -> list[dict[str, Any]]:
    """The same dicts with two arrays each, one of integers and one with a column that does not vary."""
    return [{**x, "v": np.array([rng.normal(), 0.1, 1e3 * rng.normal()]), "k": rng.integers(-9, 9, 2)} for x in dicts(rng)]


CASES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "chunking": (rows, {"template": "chunking", "constraints": "iob2"}),
    "ner": (rows, {"template": "ner", "min_count": 2}),
    "hashed rows": (rows, {"template": "pos", "n_bits": 5}),
    "macros": (rows, {"template": "macros"}),
    "hashed macros": (rows, {"template": "macros", "n_bits": 4}),
    "dicts": (dicts, {}),
    "rules": (dicts, {"constraints": ChainConstraints([("O", "O"), ("B-X", "B-Y")], {"I-Y": ["O", "I-X"]}, ["O"], ["I-X"])}),
    "hashed dicts": (dicts, {"n_bits": 3}),
    "strings": (strings, {}),
    "arrays": (arrays, {}),
    "coded": (rows, {"template": "ner", "coding": "iobes"}),
    "resources": (rows, {"template": "resources"}),
    "hashed resources": (rows, {"template": "resources", "n_bits": 5}),
    "arrays beside dicts": (dicts_with_arrays, {"constraints": "iob2"}),
    "arrays beside hashed": (dicts_with_arrays, {"n_bits": 4, "trainer": "lbfgs"}),
    "vectors": (rows, {"template": "vectors", "min_count": 2}),
    "vectors beside hashed": (rows, {"template": "vectors", "n_bits": 5}),
    "coded strings": (strings, {"coding": "iob1", "constraints": "iob1"}),
    "no intercept": (arrays, {"fit_intercept": False, "trainer": "lbfgs"}),
}


def fitted(settings: dict[str, Any], X: list[Any], rng: np.random.Generator, folder: Path) -> ChainLabeler:
    """A model of random labels, trained without constraints."""
    settings = {"max_iter": 2, "random_state": 0, **settings, "constraints": None}
    if settings.get("template") == "macros":
        (folder / "macros").write_text(MACROS)
        settings["template"] = read_template(folder / "macros")
    if settings.get("template") == "resources":
        (folder / "list").write_text("Ab ab\tX\nABC\n日本 x\tY\n")
        (folder / "brown").write_text("0110\tab\t3\n010\tA-1\n1\téß\n")
        transforms = (
            f"in:{folder}/list",
            f"cluster:{folder}/brown",
            f"cluster2:{folder}/brown",
            "doc_case",
            "doc_before",
            "doc_after",
        )
        settings["template"] = load_templates([Template(name, ((0, 0, name),)) for name in transforms])
    if settings.get("template") == "vectors":
        lines = (" ".join([word, *map(str, rng.normal(size=3))]) for word in ["ab", "A-1", "éß", "日本", "abcde"])
        (folder / "words").write_text("\n".join(lines))
        (folder / "tags").write_text("N 1 0\nV 0.5 -1\n")
        atoms = [(0, 0, f"vec:{folder}/words"), (0, -1, f"vec:{folder}/words"), (1, 1, f"vec:{folder}/tags")]
        settings["template"] = [*load_templates("pos"), *(Template(f"v{k}", (atom,), pad=True) for k, atom in enumerate(atoms))]
    return ChainLabeler(**settings).fit(X, [[LABELS[k] for k in rng.integers(5, size=len(x))] for x in X])


@pytest.mark.mostly_slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_labels_are_those_of_the_model(case: str, tmp_path: Path) -> None:
    """Trained weights and whole numbers full of ties give the same labels; empty sequences and dictionaries of labels, too."""
    (sentence, settings), rng = CASES[case], np.random.default_rng(0)
    rules = settings.get("constraints")
    model = fitted(settings, [sentence(rng) for _ in range(20)], rng, tmp_path)
    model.constraints = rules  # which the labels of training need not satisfy
    new: list[Any] = [sentence(rng) for _ in range(300)]
    new[7] = new[299] = []
    some = [None if k % 3 else [None if rng.integers(3) else ["O", "B-X", "B-Y"] for _ in x] for k, x in enumerate(new)]
    some = some if isinstance(rules, str | None) else [None] * 300
    for _ in range(3):
        program = program_of(model, tmp_path)
        for allowed in (None, some):
            expected, found = model.predict(new, allowed=allowed), program.predict(new, allowed)
            assert [a.tolist() for a in found] == [b.tolist() for b in expected]
        full_of_ties(model, rng)
    if sentence is arrays:
        found = program.predict([sparse.csr_array(x) for x in new if len(x)])
        assert [a.tolist() for a in found] == [a.tolist() for a in program.predict([x for x in new if len(x)])]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_features_are_those_of_the_model(case: str, tmp_path: Path) -> None:
    """Ids and values stand in the order of the model's, on which the last bit of a score depends: where a feature comes twice at
    a token of one sequence, the features of all tokens of its block are put in order, and of no others.
    """
    (sentence, settings), rng = CASES[case], np.random.default_rng(3)
    X = [sentence(rng) for _ in range(400)]
    X[120] = [["f7", "f3", "f7"]] if sentence is strings else X[120]
    model = fitted(settings, X, rng, tmp_path)
    packed, predictor = model.input_.transform(X), program_of(model, tmp_path).predictor()
    found = predictor.input.rows(X, packed.offsets)
    assert np.array_equal(found.indptr, packed.indptr)
    assert np.array_equal(found.ids, packed.indices)
    assert np.array_equal(np.ones(len(found.ids)) if found.values is None else found.values, packed.values)


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_a_long_sequence_and_whole_number_labels(tmp_path: Path) -> None:
    """2,500 tokens, which the model decodes in blocks, and labels that are numbers: ties are broken alike."""
    rng = np.random.default_rng(1)
    X = [[{"w": str(k)} for k in rng.integers(4, size=2500)], [{"w": "0"}]]
    model = full_of_ties(ChainLabeler(max_iter=1).fit(X, [rng.integers(9, size=2500).tolist(), [3]]), rng)
    found = program_of(model, tmp_path).predict(X)
    assert [(a.tolist(), a.dtype) for a in found] == [(b.tolist(), b.dtype) for b in model.predict(X)]


def test_bad_data_are_named(tmp_path: Path) -> None:
    """Data that cannot be read, and constraints that leave nothing, are errors that name the sample, as those of the model."""
    model = ChainLabeler(max_iter=1, constraints="iob2").fit([[{"w": "a"}, {"w": "b"}]], [["B-X", "I-X"]])
    program = program_of(model, tmp_path)
    with pytest.raises(InfeasibleError):
        model.predict([[{"w": "a"}], [{"w": "a"}]], allowed=[None, [["I-X"]]])
    for X, allowed, message in (
        ([[{"w": "a"}], [{"w": "a"}]], [None, [["I-X"]]], "sample 1: no label sequence satisfies the constraints"),
        ([[{"w": "a"}, "b"]], None, "sample 0, position 1: expected a dict of features or a list of feature strings"),
        ([[{"w": "a"}], [{"w": float("nan")}]], None, "sample 1, position 0: feature 'w' is nan"),
        ([[{"w": object()}]], None, "sample 0, position 0: feature 'w': expected a string, a number, or a list"),
        ([[{"w": "a"}]], [[["Q"]], []], r"allowed: expected 1 entries, one per sample, got 2"),
        ([[{"w": "a"}]], [[["Q"]]], "allowed, sample 0, position 0: no label that the model knows is left"),
    ):
        with pytest.raises(program.PredictorError, match=message):
            program.predict(X, allowed)


def test_bad_rows_are_named(tmp_path: Path) -> None:
    """Rows of other lengths, cells that are no strings, and too few columns are errors that name the place, or the column."""
    program = program_of(ChainLabeler(max_iter=1, template="chunking").fit([[("a", "N")] * 2], [["X", "Y"]]), tmp_path)
    for X, message in (
        ([[("a", "N")], [("b", "N"), ("c",)]], "sample 1, position 1: expected 2 columns, got 1"),
        ([[("a", 3)]], "column 1: expected strings, got 3 of type int"),
        ([["ab"]], "sample 0, position 0: expected a row of columns .* got the string 'ab'"),
        ([[("a",)]], "sample 0: expected rows of at least 2 columns, got 1"),
    ):
        with pytest.raises(program.PredictorError, match=message):
            program.predict(X)


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_bad_arrays_are_named(tmp_path: Path) -> None:
    """The program of a model that was loaded names sample, position and key; a file, which has no arrays, is refused so, too."""
    rng = np.random.default_rng(5)
    fitted({}, [dicts_with_arrays(rng) for _ in range(9)], rng, tmp_path).save(tmp_path / "m.spz")
    program, bad = program_of(ChainLabeler.load(tmp_path / "m.spz"), tmp_path), [dicts(rng)[:1], dicts_with_arrays(rng)]
    for array, got in ((np.ones(2), r"ndarray \(2,\)"), (np.array([1.0, np.inf, 0.0]), "NaN or infinity"), (None, "NoneType")):
        bad[0][0] |= {"v": array, "k": np.ones(2)}
        with pytest.raises(program.PredictorError, match=f"sample 0, position 0: feature 'v': expected .* 3 finite .*got {got}"):
            program.predict(bad)
    (tmp_path / "a.txt").write_text("O\tw\\:a\n")
    with pytest.raises(program.PredictorError, match="sample 0, position 0: feature 'v'"):
        program.predict_file(str(tmp_path / "a.txt"))
