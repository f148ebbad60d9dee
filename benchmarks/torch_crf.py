"""ChainCRF beside pytorch-crf and torch-struct: ``python benchmarks/torch_crf.py [--threads 1] [--turns 7]``.

Loss and gradient, decoding and marginals of padded batches in float32, with lengths from 5 to the longest and one state_dict for
all; milliseconds, the least of some turns, of CPU (of the clock with more threads than one). Memory: what autograd keeps from
forward to backward. Scan is this library's second backend. What would take gigabytes, or is not installed, is left out;
``pip install pytorch-crf torch-struct`` for all.
"""

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from measure import machine, table

from structpred.torch import ChainCRF, Scan

BATCHES = [(32, 40, 9), (32, 40, 23), (32, 40, 60), (64, 128, 9), (8, 1000, 9)]


class Struct(torch.nn.Module):
    """torch-struct's chains with the parameters of pytorch-crf."""

    def __init__(self, m: int) -> None:
        super().__init__()
        self.start_transitions, self.end_transitions = (torch.nn.Parameter(torch.zeros(m)) for _ in range(2))
        self.transitions = torch.nn.Parameter(torch.zeros(m, m))

    def dist(self, x: torch.Tensor, mask: torch.Tensor) -> Any:
        """Potentials [next, before]; the first and last scores are added to the positions'."""
        import torch_struct

        n, _, m = x.shape
        lengths = mask.sum(1)
        last = torch.nn.functional.one_hot(lengths - 1, x.shape[1])[..., None]
        x = x + last * self.end_transitions
        edges = self.transitions.T + x[:, 1:, :, None]
        first = (x[:, 0] + self.start_transitions)[:, None, None, :].expand(n, 1, m, m)
        return torch_struct.LinearChainCRF(torch.cat((edges[:, :1] + first, edges[:, 1:]), 1), lengths=lengths)

    def forward(self, x: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The log-likelihood."""
        import torch_struct

        dist = self.dist(x, mask)
        parts = torch_struct.LinearChainCRF.struct.to_parts(tags, x.shape[2], mask.sum(1)).type_as(x)
        return dist.log_prob(parts).sum()

    def decode(self, x: torch.Tensor, mask: torch.Tensor) -> Any:
        """The best parts."""
        return self.dist(x, mask).argmax

    def marginals(self, x: torch.Tensor, mask: torch.Tensor) -> Any:
        """Of parts."""
        return self.dist(x, mask).marginals


def modules(m: int) -> dict[str, Any]:
    """What is installed, with the same scores."""
    found: dict[str, Any] = {"ChainCRF": ChainCRF(m), "Scan": ChainCRF(m, backend=Scan())}
    if find_spec("torchcrf"):
        from torchcrf import CRF

        found["pytorch-crf"] = CRF(m, batch_first=True)
    if find_spec("torch_struct"):
        found["torch-struct"] = Struct(m)
    for own in found.values():
        own.load_state_dict(found["ChainCRF"].state_dict())
    return found


def least(call: Callable[[], Any], turns: int, clock: Callable[[], float]) -> float:
    """Milliseconds of the fastest turn; the first, which compiles, is left out; slow calls have fewer."""
    call()
    seconds = []
    for _ in range(turns):
        begun = clock()
        call()
        seconds.append(clock() - begun)
        if sum(seconds) > 1.0:
            break
    return 1e3 * min(seconds)


def kept_bytes(call: Callable[[], Any]) -> int:
    """The storage that autograd keeps for the way back."""
    seen: dict[int, int] = {}

    def pack(own: torch.Tensor) -> torch.Tensor:
        seen[own.untyped_storage().data_ptr()] = own.untyped_storage().nbytes()
        return own

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda own: own):
        value = call()
    del value
    return sum(seen.values())


def measured(n: int, longest: int, m: int, turns: int, clock: Callable[[], float]) -> list[list[str]]:
    """A row for each module: loss and gradient, decoding, marginals, MB; and how far its likelihood is from the first's."""
    torch.manual_seed(0)
    x, tags = torch.randn(n, longest, m, requires_grad=True), torch.randint(m, (n, longest))
    lengths = torch.randint(5, longest + 1, (n,))
    lengths[0] = longest
    mask = torch.arange(longest) < lengths[:, None]
    rows, reference = [], None
    for name, crf in modules(m).items():
        if name in ("Scan", "torch-struct") and n * longest * m**3 > 5e7:
            continue  # gigabytes

        def both(crf: Any = crf) -> None:
            torch.autograd.grad(-crf(x, tags, mask), (x, *crf.parameters()))

        def decode(crf: Any = crf) -> Any:
            return crf.decode(x.detach(), mask)

        def marginals(crf: Any = crf) -> Any:
            return crf.marginals(x.detach(), mask)

        value = crf(x, tags, mask).item()
        reference = value if reference is None else reference
        times = [least(both, turns, clock), least(decode, turns, clock)]
        times.append(least(marginals, turns, clock) if hasattr(crf, "marginals") else float("nan"))
        memory = kept_bytes(lambda crf=crf: crf(x, tags, mask)) / 1e6
        apart = abs(value / reference - 1.0)
        rows.append([f"{n} x {longest} x {m}", name, *(f"{own:.2f}" for own in times), f"{memory:.1f}", f"{apart:.0e}"])
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    clock = time.process_time if given.threads == 1 else time.perf_counter
    rows = []
    for size in BATCHES:
        rows += (found := measured(*size, given.turns, clock))
        print(*(", ".join(row) for row in found), sep="\n", flush=True)
    print(machine())
    print(table(["batch, time, tags", "module", "loss and gradient, ms", "decode", "marginals", "kept, MB", "apart"], rows))


if __name__ == "__main__":
    main()
