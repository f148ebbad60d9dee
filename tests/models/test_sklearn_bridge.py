"""Estimators used beside scikit-learn are scikit-learn's, and load nothing of it before; each promise in a fresh process."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

USE = """
labeler, crf = structpred.models.ChainLabeler(C=2.0), structpred.compat.CRF(c2=0.5)
class Mine(structpred.models.ChainLabeler): pass
for model in (labeler, crf, Mine(C=2.0)):
    assert isinstance(model, sklearn.base.BaseEstimator) and issubclass(type(model), sklearn.base.BaseEstimator)
    copy = sklearn.base.clone(model)
    assert type(copy) is type(model) and repr(copy) == repr(model) and "=" in repr(model)
    assert pickle.loads(pickle.dumps(labeler)).get_params() == labeler.get_params()
    assert not sklearn.utils.get_tags(model).input_tags.two_d_array
    assert "<div" in model._repr_html_() and "text/html" in model._repr_mimebundle_()
try:
    labeler.predict([[["a"]]])
except sklearn.exceptions.NotFittedError as error:
    assert isinstance(error, structpred.errors.StructpredError)
sklearn.set_config(enable_metadata_routing=True)
params = labeler.set_fit_request(sample_weight=True).get_metadata_routing().fit.requests
assert params["sample_weight"] is True
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 4, [["A", "B"], ["B", "A"]] * 4
small = structpred.models.ChainLabeler("sgd", max_iter=1)
# params: scikit-learn 1.6.0 fails on its own default
assert len(cross_val_score(make_pipeline(small), X, y, cv=2, params={})) == 2
assert GridSearchCV(small, {"C": [0.5, 1.0]}, cv=2).fit(X, y).best_params_["C"] in (0.5, 1.0)
"""
SKLEARN = "import sklearn.base, sklearn.exceptions, sklearn.utils\n"
OURS = "import pickle, structpred.compat, structpred.models\nearly = structpred.models.ChainLabeler()\n"
ROOT = Path(__file__).resolve().parents[2]
# a small scikit-learn: base.py imports a neighbour, and one loader serves all of them where they lie in a zip file
STUB = {
    "__init__": "",
    "neighbour": "",
    "exceptions": "class NotFittedError(ValueError, AttributeError): pass",
    "base": """
import types, sklearn.neighbour
class BaseEstimator:
    def __init_subclass__(cls):
        cls.set_fit_request = lambda self, **asked: asked
    def __repr__(self):
        return "a form"
    def __sklearn_tags__(self):
        return types.SimpleNamespace(input_tags=types.SimpleNamespace(), target_tags=types.SimpleNamespace())
    def __sklearn_clone__(self):
        return "a clone"
    def _repr_html_(self):
        return "<div>"
    def set_params(self, **params):
        vars(self).update(params)
""",
}
MODELS = "ChainLabeler, DependencyParser, GraphLabeler, HierarchicalMultiLabel, MultiLabelMRF, StructuredPredictor"


def fresh(code: str, *first: Path) -> str:
    """What a new Python process prints when it runs `code`; fails the test with its errors if it ends badly.

    first: places that it looks for modules in before all others.
    """
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, first), str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=1800, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_models_of_structures_load_no_scikit_learn() -> None:
    """Importing and making them loads neither scikit-learn nor numba nor SciPy."""
    code = f"import sys\nfrom structpred.models import {MODELS}, load\nChainLabeler().get_params()\nprint(*sys.modules)"
    loaded = fresh(code).split()
    assert "structpred.models.parser.parser" in loaded
    assert [name for name in ("sklearn", "numba", "scipy", "scipy.stats", "pandas") if name in loaded] == []


@pytest.mark.parametrize("order", [pytest.param(SKLEARN + OURS, marks=pytest.mark.slow), OURS + SKLEARN])
def test_order_of_imports_does_not_show(order: str) -> None:
    """isinstance, clone, tags, pickles, routing, HTML, searches and errors are scikit-learn's, whichever was imported first."""
    fresh(f"{order}assert isinstance(early, sklearn.base.BaseEstimator)\n{USE}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("ChainLabeler(C=2.0)", "ChainLabeler(C=2.0)"),
        ("ChainLabeler().set_params(C=3.0).C", "3.0"),
        ("ChainLabeler().__sklearn_tags__().input_tags.two_d_array", "False"),
        ("'<div' in ChainLabeler()._repr_html_()", "True"),
        ("sorted(ChainLabeler()._repr_mimebundle_())", "['text/html', 'text/plain']"),
    ],
)
def test_what_needs_scikit_learn_imports_it(expression: str, shown: str) -> None:
    """Forms, tags and set_params are those of scikit-learn where nobody has imported it yet, too."""
    assert fresh(f"from structpred.models import ChainLabeler\nprint({expression})") == f"{shown}\n"


@pytest.fixture
def small_sklearn(tmp_path: Path) -> Path:
    """A zip file with the modules of STUB."""
    with zipfile.ZipFile(tmp_path / "small.zip", "w") as file:
        for name, text in STUB.items():
            file.writestr(f"sklearn/{name}.py", text)
    return tmp_path / "small.zip"


def test_scikit_learn_may_come_out_of_a_zip_file(small_sklearn: Path) -> None:
    """Our classes leave Python's importers as they were: scikit-learn is imported from a zip file after them."""
    code = (
        "import sys\nbefore = list(sys.meta_path)\nfrom structpred.models import ChainLabeler\nassert sys.meta_path == before\n"
        "import sklearn.base\nprint(isinstance(ChainLabeler(), sklearn.base.BaseEstimator), sklearn.base.__file__)"
    )
    assert fresh(code, small_sklearn).split() == ["True", str(small_sklearn / "sklearn" / "base.py")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    [
        "assert isinstance(early, sklearn.base.BaseEstimator)",
        "assert not isinstance(early, str)",
        "assert early.__class__.__name__ == 'ChainLabeler' and type(early.__class__()) is ChainLabeler",
        "assert early.__sklearn_clone__() == 'a clone'",
        "assert early.set_fit_request(sample_weight=True) == {'sample_weight': True}",
        "assert early.__sklearn_tags__().input_tags.two_d_array is False",
        "assert repr(early) == 'a form'",
        "assert early._repr_html_() == '<div>'",
        "assert type(pickle.loads(pickle.dumps(early))) is ChainLabeler",
        "assert type(pickle.loads(pickle.dumps(early, protocol=0))) is ChainLabeler",
        "assert type(copy.copy(early)) is type(copy.deepcopy(early)) is ChainLabeler",
        "early.set_params(C=2.0)",
        "early.C = 2.0",
        "assert not hasattr(early, 'weights_')",
        "assert issubclass(type(ChainLabeler(C=2.0)), sklearn.base.BaseEstimator)",
        "class Mine(ChainLabeler): pass\nassert Mine(C=2.0).C == 2.0",
        "importlib.reload(sys.modules['structpred.models.sklearn_bridge'])\nearly.C = 2.0",
        "try:\n    early.predict([[['a']]])\nexcept sklearn.exceptions.NotFittedError as error:\n    assert 'fit' in str(error)",
    ],
)
def test_any_first_use_joins(use: str, small_sklearn: Path) -> None:
    """Whatever is first asked of an estimator made before scikit-learn was imported, its class is scikit-learn's afterwards."""
    code = (
        "import copy, importlib, pickle, sys\nfrom structpred.models import ChainLabeler\nearly = ChainLabeler()\n"
        f"import sklearn.base, sklearn.exceptions\n{use}\n"
        "assert issubclass(ChainLabeler, sklearn.base.BaseEstimator) and type(early) is ChainLabeler\n"
    )
    fresh(code, small_sklearn)


def test_without_scikit_learn_nothing_changes() -> None:
    """Missing attributes, copies and pickles are those of any Python object, and nobody imports scikit-learn for them."""
    code = """
import copy, pickle, sys
from structpred.models import ChainLabeler
early = ChainLabeler(C=2.0)
assert early.__class__ is type(copy.deepcopy(early)) is type(pickle.loads(pickle.dumps(early))) is ChainLabeler
try:
    early.weights_
except AttributeError as error:
    print(error)
assert "sklearn" not in sys.modules
"""
    assert fresh(code) == "'ChainLabeler' object has no attribute 'weights_'\n"
