"""Small multi-label data for the tests of the command line, in every format."""

from pathlib import Path

import numpy as np

LABELS = ("sun", "rain", "wind", "storm cloud")
N_FEATURES = 5


def examples(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, and labels that depend on them and on each other; storm only with rain."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, N_FEATURES)), 3)
    Y = (X[:, :4] + 0.3 * rng.normal(size=(n, 4)) > 0).astype(np.int64)
    Y[:, 3] &= Y[:, 1]
    return X, Y


def arff_text(X: np.ndarray, Y: np.ndarray | None) -> str:
    """Mulan's ARFF; without Y the label attributes are missing."""
    lines = ["@relation weather", *(f"@attribute f{k} numeric" for k in range(X.shape[1]))]
    lines += [] if Y is None else [f"@attribute '{name}' {{0,1}}" for name in LABELS]
    rows = X.tolist() if Y is None else [[*x, *y] for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    return "\n".join([*lines, "@data", *(",".join(map(str, row)) for row in rows)]) + "\n"


def xml_text(*names: str) -> str:
    """A label file."""
    labels = "".join(f'<label name="{name}"></label>\n' for name in names)
    return f'<?xml version="1.0"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n{labels}</labels>\n'


def libsvm_text(X: np.ndarray, Y: np.ndarray) -> str:
    """LIBSVM's text with numbers of labels."""
    lines = []
    for x, y in zip(X.tolist(), Y.tolist(), strict=True):
        pairs = " ".join(f"{k}:{value}" for k, value in enumerate(x, 1))
        lines.append(f"{','.join(str(k) for k, on in enumerate(y) if on)} {pairs}\n")
    return "".join(lines)


def clus_text(X: np.ndarray, Y: np.ndarray) -> str:
    """CLUS with the tree 1, 1/1, 1/2, 2; an example with none of the labels gets 2."""
    paths = ("1", "1/1", "1/2", "2")
    lines = ["@RELATION tree", *(f"@ATTRIBUTE f{k} numeric" for k in range(X.shape[1]))]
    lines += [f"@ATTRIBUTE class hierarchical {','.join(paths)}", "@DATA"]
    for x, y in zip(X.tolist(), Y.tolist(), strict=True):
        on = [path for path, flag in zip(paths, y, strict=True) if flag] or ["2"]
        lines.append(",".join([*map(str, x), "@".join(on)]))
    return "\n".join(lines) + "\n"


def write_all(folder: Path) -> None:
    """train and test in every format, the label XML, a hierarchy, and test examples without labels."""
    for name, n, seed in (("train", 80, 0), ("test", 40, 1)):
        X, Y = examples(n, seed)
        (folder / f"weather-{name}.arff").write_text(arff_text(X, Y))
        (folder / f"{name}.svm").write_text(libsvm_text(X, Y))
        (folder / f"tree-{name}.arff").write_text(clus_text(X, Y))
        names = [f"f{k}" for k in range(N_FEATURES)]
        np.savez(folder / f"{name}.npz", X=X, Y=Y.astype(np.uint8), label_names=LABELS, feature_names=names)
    (folder / "bare.arff").write_text(arff_text(examples(40, 1)[0], None))
    (folder / "weather.xml").write_text(xml_text(*LABELS))
    (folder / "edges.txt").write_text("# a storm needs rain\nrain\tstorm cloud\n")
