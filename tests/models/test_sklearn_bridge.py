"""Estimators are scikit-learn's once scikit-learn is imported, and load nothing of it before; each promise in a fresh process."""

import subprocess
import sys

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
assert len(cross_val_score(make_pipeline(small), X, y, cv=2)) == 2
assert GridSearchCV(small, {"C": [0.5, 1.0]}, cv=2).fit(X, y).best_params_["C"] in (0.5, 1.0)
"""
SKLEARN = "import sklearn.base, sklearn.exceptions, sklearn.utils\n"
OURS = "import pickle, structpred.compat, structpred.models\nearly = structpred.models.ChainLabeler()\n"
MODELS = "ChainLabeler, DependencyParser, GraphLabeler, HierarchicalMultiLabel, MultiLabelMRF, StructuredPredictor"


def fresh(code: str) -> str:
    """What a new Python process prints when it runs `code`; fails the test with its errors if it ends badly."""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
