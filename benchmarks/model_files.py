"""Whether model files that another version wrote still load and predict the same.

    PYTHONPATH=OTHER python benchmarks/model_files.py --write FOLDER     with the structpred of another checkout
    python benchmarks/model_files.py --compare FOLDER                    with this one: what differs

FOLDER holds a small model of each kind and, next to it, what it predicted (labels, scores, probabilities, k best).
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Fit = Callable[[], Any]
Predict = Callable[[Any], Any]

WORDS = ["the cat sees a small dog", "a dog barks", "the small cat sleeps", "dogs see the cat", "a cat"]
TAGS = ["DET NOUN VERB DET ADJ NOUN", "DET NOUN VERB", "DET ADJ NOUN VERB", "NOUN VERB DET NOUN", "DET NOUN"]
HEADS = [[2, 3, 0, 6, 6, 3], [2, 3, 0], [3, 3, 4, 0], [2, 0, 4, 2], [2, 0]]


def plain(value: Any) -> Any:
    """What predictions are made of, as JSON has it: floats keep every bit."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "heads"):
        return [value.heads.tolist(), None if value.labels is None else list(value.labels)]
    return value.item() if isinstance(value, np.generic) else value


def cases() -> Iterator[tuple[str, Fit, Predict]]:
    """Name, a function that fits, and all that is predicted from one model."""
    yield from chains()
    yield from parsers()
    yield from fields()


def chains() -> Iterator[tuple[str, Fit, Predict]]:
    """Templates, hashed names, dictionaries of names, numbers; margin and log loss."""
    from structpred.models import ChainLabeler

    words, tags = [text.split() for text in WORDS], [text.split() for text in TAGS]
    rows = [[(w, w[-1], w[0]) for w in sentence] for sentence in words]
    names = [[{"w": w, "long": float(len(w))} for w in sentence] for sentence in words]
    numbers = [np.array([[len(w), ord(w[0]) / 100.0, 1.0] for w in sentence]) for sentence in words]

    def of(model: Any, X: Any) -> tuple[Fit, Predict]:
        def predict(m: Any) -> Any:
            more = m.predict_marginals(X) if m.probabilistic_ else m.predict_score_gaps(X)
            return m.predict(X), more, m.predict_kbest(X, 2), [m.explain(x).score for x in X[:2]]

        return lambda: model.fit(X, tags), predict

    yield "chain_templates", *of(ChainLabeler(max_iter=5, template="pos", constraints=None), rows)
    yield "chain_hashed", *of(ChainLabeler("sgd", max_iter=3, n_bits=7), names)
    yield "chain_dicts", *of(ChainLabeler("lbfgs", max_iter=4, n_jobs=2), names)
    yield "chain_numeric", *of(ChainLabeler("oeg", max_iter=3), numbers)


def parsers() -> Iterator[tuple[str, Fit, Predict]]:
    """With relations and pruning, and a random field over trees."""
    from structpred.models import DependencyParser

    X = [
        [{"form": w, "upos": t} for w, t in zip(words.split(), tags.split(), strict=True)]
        for words, tags in zip(WORDS, TAGS, strict=True)
    ]
    y = [[(h, "root" if h == 0 else f"to{h % 2}") for h in heads] for heads in HEADS]

    def predict(m: Any) -> Any:
        return m.predict(X), m.predict_kbest(X, 2), m.predict_marginals(X) if m.probabilistic_ else None

    yield "parser_relations", lambda: DependencyParser(prune=2, max_bits=8, max_iter=3).fit(X, y), predict
    yield "parser_oeg", lambda: DependencyParser("oeg", C=1.0, max_bits=8, max_iter=3, labelled=False).fit(X, y), predict


def fields() -> Iterator[tuple[str, Fit, Predict]]:
    """Label sets, hierarchies, graphs, and an oracle that a file only names."""
    from structpred.models import GraphLabeler, HierarchicalMultiLabel, MultiLabelMRF, StructuredPredictor
    from structpred.oracles.multiclass import MulticlassOracle

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4)).round(2)
    Y = (X[:, :3] + 0.3 * rng.normal(size=(20, 3)) > 0).astype(np.int64)
    closed = Y.copy()
    closed[:, 0] |= closed[:, 1] | closed[:, 2]
    graphs = [(rng.normal(size=(4, 2)).round(2), [(0, 1), (1, 2), (2, 3), (3, 0)][: 3 + k % 2]) for k in range(6)]
    nodes = [["a" if row[0] > 0 else "b" for row in x[0]] for x in graphs]

    def sets(m: Any) -> Any:
        return m.predict(X), m.predict_scores(X), m.predict_marginals(X) if log(m) else None

    def over_graphs(m: Any) -> Any:
        return m.predict(graphs), m.predict_marginals(graphs) if log(m) else None

    def log(m: Any) -> bool:
        return bool(m.surrogate == "log" or m.trainer == "oeg")

    yield "multilabel", lambda: MultiLabelMRF(max_iter=5).fit(X, Y), sets
    yield "multilabel_log", lambda: MultiLabelMRF("sgd", max_iter=5, surrogate="log", edges="tree").fit(X, Y), sets
    tree = {"hierarchy": [-1, 0, 0], "label_weights": "depth"}
    yield "hierarchical", lambda: HierarchicalMultiLabel(max_iter=5, **tree).fit(X, closed), sets
    yield "hierarchical_log", lambda: HierarchicalMultiLabel("oeg", max_iter=5, **tree).fit(X, closed), sets
    yield "graph", lambda: GraphLabeler(max_iter=5).fit(graphs, nodes), over_graphs
    yield "graph_log", lambda: GraphLabeler("oeg", max_iter=5, bias=0.0).fit(graphs, nodes), over_graphs
    parts, shapes = [rng.normal(size=(3, 4)).round(2) for _ in range(6)], [(3,)] * 6
    yield (
        "structured",
        lambda: StructuredPredictor(MulticlassOracle(), max_iter=5).fit(parts, [[k % 3] for k in range(6)], shapes),
        lambda m: m.predict(parts, shapes),
    )


def write(folder: Path) -> None:
    """Fit, save and note the predictions."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, fit, predict in cases():
        model = fit()
        model.save(folder / f"{name}.spz")
        (folder / f"{name}.json").write_text(json.dumps(plain(predict(model))))
        print(f"{name}: written")


def compare(folder: Path) -> bool:
    """Load each file; whether all predict what was noted, and another fit gives the same weights."""
    from structpred.models import load
    from structpred.oracles.multiclass import MulticlassOracle

    same = True
    for name, fit, predict in cases():
        path = folder / f"{name}.spz"
        model = load(path, oracle=MulticlassOracle()) if name == "structured" else load(path)
        checks = {
            "predictions": json.dumps(plain(predict(model))) == (folder / f"{name}.json").read_text(),
            "weights": np.array_equal(fit().coef_, model.coef_),
        }
        same &= all(checks.values())
        print(f"{name}: " + ", ".join(what + (" the same" if good else " DIFFER") for what, good in checks.items()))
    return same


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", type=Path)
    group.add_argument("--compare", type=Path)
    given = parser.parse_args()
    if given.write is not None:
        write(given.write)
    else:
        sys.exit(0 if compare(given.compare) else 1)
