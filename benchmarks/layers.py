"""Losses and layers beside torch-struct and one-by-one projections: ``python benchmarks/layers.py [--quick]``.

CRF losses of label chains with their gradients, of equal and of ragged lengths, and the pull-back of their marginals, beside
torch-struct on one CPU thread (it is made for GPUs, and works in float32). SparseMAP in lockstep beside a projection an instance,
cold and after scores moved by 1 %. The perturbed loss of 10 samples on paths. Milliseconds of CPU an instance,
least of some turns. Needs PyTorch and `pip install torch-struct`; without them the rest is measured.

--quick takes fewer instances and turns.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from measure import machine, table, verdict

from structpred.core.oracle import Oracle
from structpred.layers import CRF, PerturbedLoss, Scores, SoftLayer
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.shortest_path import ShortestPathOracle
from structpred.projections.lockstep import ActiveSets, nearest_in_hulls


def least(calls: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """The least CPU seconds of each call, taken in turns; the first turn, which compiles, is left out."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(turns + 1):
        for name, call in calls.items():
            begun = time.process_time()
            call()
            if turn:
                found[name].append(time.process_time() - begun)
    return {name: min(seconds) for name, seconds in found.items()}


def chains(lengths: Sequence[int], n_labels: int, turns: int) -> tuple[dict[str, float], float]:
    """ms an instance of the CRF loss and of the marginals' pull-back, ours and torch-struct's; how far log Z differ."""
    rng, n = np.random.default_rng(0), len(lengths)
    oracle = ChainOracle()
    batch = Scores.of(oracle, [(length, n_labels) for length in lengths])
    theta, above = rng.normal(size=batch.size), rng.normal(size=batch.size)
    gold = batch.decide(rng.normal(size=batch.size))
    loss, layer = CRF(oracle), SoftLayer(oracle)
    calls: dict[str, Callable[[], Any]] = {
        "loss": lambda: loss(batch, theta, gold=gold),
        "pull": lambda: layer(batch, theta).pull(above),
    }
    apart = np.nan
    if find_spec("torch_struct") and find_spec("torch"):
        import torch
        import torch_struct

        torch.set_num_threads(1)
        longest = max(lengths)
        potentials = np.zeros((n, longest - 1, n_labels, n_labels), dtype=np.float32)
        weights = rng.normal(size=potentials.shape).astype(np.float32)
        taken = np.zeros_like(potentials)
        for i, own in enumerate(batch.split(theta)):
            labels, moves = own[: lengths[i] * n_labels].reshape(-1, n_labels), own[lengths[i] * n_labels :].reshape(n_labels, -1)
            potentials[i, : lengths[i] - 1] = moves.T + labels[1:, :, None]  # [next, previous]
            potentials[i, 0] += labels[0]
            y = gold[i]
            taken[i, np.arange(len(y) - 1), y[1:], y[:-1]] = 1.0
        ends = torch.tensor(lengths)

        def their_loss() -> Any:
            scores = torch.tensor(potentials, requires_grad=True)
            crf = torch_struct.LinearChainCRF(scores, lengths=ends)
            value = crf.partition - (scores * torch.from_numpy(taken)).sum(dim=(1, 2, 3))
            value.sum().backward()
            return value

        def their_pull() -> None:
            scores = torch.tensor(potentials, requires_grad=True)
            marginals = torch_struct.LinearChainCRF(scores, lengths=ends).marginals
            (marginals * torch.from_numpy(weights)).sum().backward()

        calls |= {"their loss": their_loss, "their pull": their_pull}
        apart = float(np.abs(their_loss().detach().numpy() - loss(batch, theta, gold=gold).values).max())
    return {name: 1000 * seconds / n for name, seconds in least(calls, turns).items()}, apart


def sparsemap(oracle: Oracle, shapes: Sequence[Any], turns: int) -> tuple[dict[str, float], float, float]:
    """ms an instance: cold, warm, one by one, the pull-back; the largest gap; the share of calls after a step of 1 %."""
    rng, n = np.random.default_rng(0), len(shapes)
    offsets = np.cumsum([0, *(oracle.n_parts(shape) for shape in shapes)])
    points = rng.normal(size=offsets[-1])
    moved = points * (1 + 0.01 * rng.normal(size=len(points)))
    kept = ActiveSets()
    cold = nearest_in_hulls(oracle, points, offsets, shapes, sets=kept, ids=range(n))
    warm = nearest_in_hulls(oracle, moved, offsets, shapes, sets=kept, ids=range(n))
    share = float(warm.n_calls.sum() / cold.n_calls.sum())
    some = range(0, n, max(1, n // 20))
    places = iter([points, moved] * (turns + 1))

    def alone() -> None:
        for i in some:
            shape, own = shapes[i], points[offsets[i] : offsets[i + 1]]
            nearest_in_hulls(oracle, own, [0, len(own)], [shape])

    fresh = nearest_in_hulls(oracle, points, offsets, shapes)  # those of the kept sets are solved for again below
    calls: dict[str, Callable[[], Any]] = {
        "cold": lambda: nearest_in_hulls(oracle, points, offsets, shapes),
        "alone": alone,
        "warm": lambda: nearest_in_hulls(oracle, next(places), offsets, shapes, sets=kept, ids=range(n)),
        "pull": lambda: fresh.pull_back(points),
    }
    seconds = least(calls, turns)
    scale = {"alone": len(some)}
    return {name: 1000 * own / scale.get(name, n) for name, own in seconds.items()}, float(cold.gaps.max()), share


def main() -> None:
    """Three tables and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    n, turns = (20, 1) if given.quick else (200, 5)
    rng = np.random.default_rng(1)
    print(f"{machine()}; ms of CPU an instance, least of {turns} turns\n")
    rows, verdicts = [], []
    goals = {"20 x 10": (40, 30), "5 to 40 x 10": (100, 30)}
    for name, lengths in {"20 x 10": [20] * n, "5 to 40 x 10": rng.integers(5, 41, n).tolist()}.items():
        found, apart = chains(lengths, 10, turns)
        theirs = [found.get(f"their {what}", np.nan) for what in ("loss", "pull")]
        ratios = [theirs[0] / found["loss"], theirs[1] / found["pull"]]
        cells = [f"{x:.4f}" for x in (found["loss"], theirs[0], found["pull"], theirs[1])]
        rows.append([name, *cells, f"{ratios[0]:.0f}", f"{ratios[1]:.0f}", f"{apart:.1g}"])
        for what, ratio, goal in zip(("CRF loss and gradient", "marginals' pull-back"), ratios, goals[name], strict=True):
            verdicts.append(verdict(f"{name}: {what} at least {goal} times torch-struct", ratio >= goal, f"{ratio:.0f}"))
    head = ["chains", "CRF loss", "torch-struct", "pull-back", "torch-struct", "times", "times", "losses differ by"]
    print(table(head, rows) + "\n")
    rows = []
    trees = [(int(k),) for k in rng.integers(10, 31, n)]
    jobs: list[tuple[str, Oracle, Sequence[Any], int]] = [
        ("chain 20 x 10", ChainOracle(), [(20, 10)] * n, 10),
        ("tree of 10", ArborescenceOracle(), [(10,)] * n, 10),
        ("trees of 10 to 30", ArborescenceOracle(), trees, 7),
        ("matching of 8", AssignmentOracle(), [(8,)] * n, 10),
        ("path 5 x 5", ShortestPathOracle(), [(5, 5)] * n, 10),
        ("path 12 x 12", ShortestPathOracle(), [(12, 12)] * n, 10),
    ]
    for name, oracle, shapes, goal in jobs:
        found, gap, share = sparsemap(oracle, shapes, turns)
        ratio = found["alone"] / found["cold"]
        cells = [f"{found[x]:.4f}" for x in ("alone", "cold", "warm", "pull")]
        rows.append([name, *cells, f"{ratio:.0f}", f"{gap:.0e}", f"{100 * share:.0f} %"])
        verdicts.append(verdict(f"SparseMAP, {name}: at least {goal} times one by one", ratio >= goal, f"{ratio:.0f}"))
        verdicts.append(verdict(f"SparseMAP, {name}: gap at most 1e-10", gap <= 1e-10, f"{gap:.0e}"))
        verdicts.append(verdict(f"SparseMAP, {name}: 1 % costs at most 25 % of the calls", share <= 0.25, f"{100 * share:.0f} %"))
    print(table(["SparseMAP", "one by one", "lockstep", "warm", "pull-back", "times", "gap", "calls after 1 %"], rows) + "\n")
    paths = ShortestPathOracle()
    batch = Scores.of(paths, [(5, 5)] * (10 * n))
    theta = rng.normal(size=batch.size)
    gold = batch.points(batch.decide(rng.normal(size=batch.size)))
    loss = PerturbedLoss(paths, samples=10)
    ms = 1000 * least({"loss": lambda: loss(batch, theta, gold=gold)}, turns)["loss"] / len(batch)
    print(f"perturbed loss, 10 samples, path 5 x 5: {ms:.4f} ms an instance\n")
    verdicts.append(verdict("perturbed loss, 10 samples, path 5 x 5: at most 0.012 ms an instance", ms <= 0.012, f"{ms:.4f}"))
    print("\n".join(verdicts))


if __name__ == "__main__":
    main()
