"""Predict, then optimise, beside PyEPO over OR-Tools: ``python benchmarks/decisions.py [--quick]``.

The same torch loop (a linear map, Adam, batches of 32), the same data (PyEPO's generators) and the same first weights for both.
Shortest paths on a 5 x 5 grid and knapsacks of 32 items with two rows; SPO+ and the perturbed Fenchel-Young loss. The regret is
normalised, on 1,000 test instances. A third protocol puts our compiled path search inside PyEPO's own losses, one call an
instance: what is left is the batches. "the loop" has a loss that costs nothing: nobody can be faster in it, and the seconds of a
loss alone are those above it. Needs PyTorch and `pip install pyepo`. Gurobi, which PyEPO prefers, is not compared:
OR-Tools' GLOP and SCIP are.

--quick takes 100 instances and one epoch.
"""

import argparse
import copy
import sys
from typing import Any

from measure import Stopwatch, in_child, machine, table, verdict

#: problem -> parts, epochs, noisy samples
PROBLEMS = {"path": (40, 10, 10), "knapsack": (32, 4, 4)}


def data(problem: str, n: int) -> tuple[Any, Any, Any, Any]:
    """(training features, costs, test features, costs), and what is needed to solve."""
    import pyepo.data

    if problem == "path":
        X, c = pyepo.data.shortestpath.genData(2 * n, 5, (5, 5), deg=6, noise_width=0.5, seed=42)
        return X, c, (5, 5), None
    weights, X, c = pyepo.data.knapsack.genData(2 * n, 5, 32, dim=2, deg=6, noise_width=0.5, seed=42)
    return X, c, weights, [20.0, 20.0]


def theirs(problem: str, weights: Any, capacity: Any, inside: bool) -> Any:
    """PyEPO's model; inside: with our path search in its `solve`."""
    import numpy as np
    import pyepo.model.ort

    if problem == "knapsack":
        return pyepo.model.ort.knapsackModel(weights=weights, capacity=capacity)
    plain = pyepo.model.ort.shortestPathModel((5, 5))
    if not inside:
        return plain
    from structpred.oracles.shortest_path import ShortestPathOracle

    oracle = ShortestPathOracle()

    class Inside(pyepo.model.ort.shortestPathModel):  # type: ignore[misc]
        """PyEPO's protocol over our search."""

        def setObj(self, c: Any) -> None:
            self.scores = -np.asarray(c, dtype=np.float64)

        def solve(self) -> tuple[Any, float]:
            parts = oracle.parts(oracle.argmax(self.scores, (5, 5)), (5, 5))
            found = np.zeros(40, dtype=np.float32)
            found[parts] = 1.0
            return found, float(-self.scores[parts].sum())

    return Inside((5, 5))


def run(watch: Stopwatch, problem: str, loss: str, who: str, n: int, epochs: int) -> dict[str, Any]:
    """Train; the regret on the test half. CPU seconds of the loop alone, without data and imports."""
    import numpy as np
    import torch

    from structpred.layers import Scores

    torch.set_num_threads(1)
    n_parts, _, samples = PROBLEMS[problem]
    X, c, weights, capacity = data(problem, n)
    X, c = X.astype(np.float32), c.astype(np.float32)
    oracle, shape, sign = solver(problem, weights, capacity)
    torch.manual_seed(0)
    net = torch.nn.Linear(X.shape[1], n_parts)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    rng = np.random.default_rng(0)
    batch = Scores.of(oracle, [shape] * n)
    best = batch.best(sign * c[:n].astype(np.float64).ravel())
    gold = batch.counts(best).reshape(n, -1).astype(np.float32)
    values = (c[:n] * gold).sum(axis=1, keepdims=True)
    if who == "the loop":
        free = nothing()
    elif who == "ours":
        import structpred.torch

        ours: Any = (
            structpred.torch.SPOPlus(oracle) if loss == "spo+" else structpred.torch.PerturbedLoss(oracle, samples=samples)
        )
    else:
        import pyepo.func

        model = theirs(problem, weights, capacity, who == "inside")
        if loss == "spo+":
            peer: Any = pyepo.func.SPOPlus(model, processes=1)
        else:
            peer = pyepo.func.perturbedFenchelYoung(model, n_samples=samples, sigma=1.0, processes=1)
    truth = sign * c[:n] if who == "ours" else c[:n]
    tensors = [torch.from_numpy(x) for x in (X[:n], truth, gold, values.astype(np.float32))]

    def one_epoch() -> None:
        order = rng.permutation(n)
        for start in range(0, n, 32):
            rows = torch.from_numpy(order[start : start + 32])
            x, cost, target, value = (tensor[rows] for tensor in tensors)
            predicted = net(x)
            if who == "the loop":
                found = free(predicted).mean()
            elif who == "ours":
                scores = predicted if sign > 0 else -predicted
                given = {"true_scores": cost} if loss == "spo+" else {}
                found = ours(scores, shapes=[shape] * len(rows), gold=target, ids=rows, **given).mean()
            elif loss == "spo+":
                found = peer(predicted, cost, target, value)
            else:
                found = peer(predicted, target)
            optimiser.zero_grad()
            found.backward()
            optimiser.step()

    first = copy.deepcopy((net.state_dict(), rng.bit_generator.state))
    one_epoch()  # compiles
    net.load_state_dict(first[0])
    rng.bit_generator.state = first[1]
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    with watch("loop"):
        for _ in range(epochs):
            one_epoch()
    test = Scores.of(oracle, [shape] * n)
    true = sign * c[n:].astype(np.float64).ravel()
    with torch.no_grad():
        decided = test.counts(test.best(sign * net(torch.from_numpy(X[n:])).numpy().astype(np.float64).ravel()))
    optimum = test.best(true).values.sum()
    return {"regret": float((optimum - true @ decided) / abs(optimum))}


def nothing() -> Any:
    """A loss that costs nothing, whose gradient is what it was given."""
    import torch

    class Nothing(torch.autograd.Function):
        """The first score; the scores."""

        @staticmethod
        def forward(ctx: Any, theta: Any) -> Any:
            ctx.gradient = theta.detach()
            return ctx.gradient[:, 0]

        @staticmethod
        def backward(ctx: Any, upstream: Any) -> Any:
            return ctx.gradient

    return Nothing.apply


def estimator(watch: Stopwatch, problem: str, loss: str, who: str, n: int, epochs: int) -> dict[str, Any]:
    """The same by DecisionModel in numpy, which starts from least squares; CPU seconds of the whole of `fit`."""
    from structpred.layers import PerturbedLoss
    from structpred.models import DecisionModel

    X, c, weights, capacity = data(problem, n)
    oracle, shape, sign = solver(problem, weights, capacity)
    named: Any = loss if loss == "spo+" else PerturbedLoss(oracle, samples=PROBLEMS[problem][2])
    given = {"costs" if sign < 0 else "values": c[:n]}
    DecisionModel(oracle, shape=shape, loss=named, max_iter=1).fit(X[:n], **given)  # compiles
    with watch("loop"):
        model = DecisionModel(oracle, shape=shape, loss=named, max_iter=epochs).fit(X[:n], **given)
    return {"regret": 1.0 - model.score(X[n:], **{name: c[n:] for name in given})}


def solver(problem: str, weights: Any, capacity: Any) -> tuple[Any, Any, float]:
    """(oracle, shape, sign): scores are sign times costs."""
    if problem == "path":
        from structpred.oracles.shortest_path import ShortestPathOracle

        return ShortestPathOracle(), (5, 5), -1.0
    from structpred.oracles.knapsack import KnapsackOracle, knapsack_shape

    return KnapsackOracle(), knapsack_shape(weights, capacity), 1.0


def main() -> None:
    """The table and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    try:
        import pyepo  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        sys.exit(f"{error}: this comparison needs PyTorch and PyEPO (pip install torch pyepo)")
    rows, ratios, regrets = [], {}, {}
    for problem, (_, epochs, samples) in PROBLEMS.items():
        for loss in ("spo+", "perturbed"):
            found: dict[str, list[dict[str, Any]]] = {}
            for turn in range(1 if given.quick else given.rounds):
                for who in ("the loop", "ours", "DecisionModel", "PyEPO", *(["inside"] if problem == "path" else [])):
                    if turn and who == "PyEPO" and problem == "knapsack":
                        continue  # minutes
                    call = {"problem": problem, "loss": loss, "who": who, "n": 100 if given.quick else 1000}
                    called = "estimator" if who == "DecisionModel" else "run"
                    row = in_child(f"decisions:{called}", **call, epochs=1 if given.quick else epochs)
                    found.setdefault(who, []).append(row)
            least = {who: min(row["seconds"]["loop"] for row in own) for who, own in found.items()}
            for who, own in found.items():
                name = f"{problem}, {loss}" + (f", {samples} samples" if loss == "perturbed" else "")
                ratio = least[who] / least["ours"]
                alone = (least[who] - least["the loop"]) / (least["ours"] - least["the loop"])
                cells = ["" if who in ("the loop", "DecisionModel") else f"{alone:.1f}"]
                cells.append("" if who == "the loop" else f"{own[0]['regret']:.4f}")
                rows.append([name, who, f"{least[who]:.3f}", f"{ratio:.1f}", *cells])
                ratios[problem, loss, who], regrets[problem, loss, who] = (ratio, alone), own[0]["regret"]
    print(f"\n{machine()}; CPU seconds of the loop, least of {given.rounds} turns\n")
    print(table(["problem, loss", "program", "CPU s", "times ours", "the loss alone", "regret"], rows) + "\n")
    for (problem, loss), least_ratio in {
        ("path", "spo+"): 10, ("path", "perturbed"): 50, ("knapsack", "spo+"): 100, ("knapsack", "perturbed"): 300,
    }.items():  # fmt: skip
        ratio, alone = ratios[problem, loss, "PyEPO"]
        reached = f"{ratio:.0f}, the loss alone {alone:.0f}"
        print(verdict(f"{problem}, {loss}: at least {least_ratio} times PyEPO", ratio >= least_ratio, reached))
        apart = abs(regrets[problem, loss, "ours"] - regrets[problem, loss, "PyEPO"])
        most = 1e-4 if (problem, loss) == ("path", "spo+") else 0.005
        print(verdict(f"{problem}, {loss}: the regrets differ by at most {most:g}", apart <= most, f"{apart:.5f}"))
    for loss in ("spo+", "perturbed"):
        ratio, alone = ratios["path", loss, "inside"]
        reached = f"{ratio:.1f}, the loss alone {alone:.1f}"
        print(verdict(f"path, {loss}: at least 8 times our search inside PyEPO", ratio >= 8, reached))


if __name__ == "__main__":
    main()
