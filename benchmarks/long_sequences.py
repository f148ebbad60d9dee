"""One sentence of up to a million tokens with 50 labels: ``python benchmarks/long_sequences.py``.

Viterbi decoding and marginals, CPU seconds and how far the peak lies above the memory with the packed input; and the error
for what cannot fit, with the memory that was taken before it came.
"""

import resource
from typing import Any

from measure import Stopwatch, in_child, machine, table, verdict

N_LABELS, N_FEATURES = 50, 100_000


def sentence(length: int) -> tuple[Any, Any]:
    """A packed sentence with ten features a token, and float32 weights."""
    import numpy as np

    from structpred.core.weights import padded
    from structpred.data.sequences import PackedSequences

    rng = np.random.default_rng(0)
    indices = rng.integers(0, N_FEATURES, 10 * length, dtype=np.int32)
    ends = np.arange(0, 10 * length + 1, 10)
    data = PackedSequences(ends, indices, np.ones(10 * length, np.float32), np.array([0, length]), N_FEATURES)
    width = padded(N_LABELS)
    table_ = np.zeros((N_FEATURES + 2 + N_LABELS, width), np.float32)
    table_[:, :N_LABELS] = rng.normal(size=(len(table_), N_LABELS))
    return data, table_.ravel()


def peak() -> float:
    """The largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def present() -> float:
    """The memory of this process now, in MiB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def decode(watch: Stopwatch, length: int) -> dict[str, Any]:
    """Decode one sentence."""
    from structpred.models.chain.decoding import decode_chains

    small, w = sentence(1000)
    decode_chains(small, N_LABELS, w)
    data, w = sentence(length)
    before = present()
    with watch("work"):
        decode_chains(data, N_LABELS, w)
    return {"grown": peak() - before}


def sums(watch: Stopwatch, length: int) -> dict[str, Any]:
    """Marginals of one sentence."""
    from structpred.models.chain.decoding import chain_marginals

    small, w = sentence(1000)
    chain_marginals(small, N_LABELS, w, None)
    data, w = sentence(length)
    before = present()
    with watch("work"):
        mu = chain_marginals(data, N_LABELS, w, None)[0]
    return {"grown": peak() - before, "off": float(abs(mu.sum(axis=1) - 1.0).max())}


def too_long(watch: Stopwatch, length: int) -> dict[str, Any]:
    """Ask for the k best of a sentence whose tables cannot fit into any machine of today."""
    from structpred.errors import DataError
    from structpred.models.chain.decoding import chain_kbest

    data, w = sentence(length)
    chain_kbest(sentence(10)[0], N_LABELS, w, None, 2)
    before = present()
    try:
        chain_kbest(data, N_LABELS, w, None, 1_000_000)
    except DataError as error:
        return {"grown": peak() - before, "error": str(error)}
    return {"grown": peak() - before, "error": ""}


def main() -> None:
    """Print the table and the verdicts."""
    rows: list[list[str]] = []
    for length in (10_000, 100_000, 1_000_000):
        for name in ("decode", "sums"):
            r = in_child(f"long_sequences:{name}", length=length)
            rows.append([f"{length:,}", name, f"{r['seconds']['work']:.2f}", f"{r['grown']:.0f}"])
            if name == "decode":
                grown = r["grown"]
            else:
                off = r["off"]
    refused = in_child("long_sequences:too_long", length=100_000)
    print(f"\nOne sentence, {N_LABELS} labels ({machine()})\n")
    print(table(["tokens", "work", "CPU s", "peak above the input, MiB"], rows))
    print(f"\nrefused: {refused['error']}\n")
    figure = f"{grown:.0f} MiB, labels and per-token numbers of 8 bytes among them"
    print(verdict("a million tokens decode within 64 MiB", grown <= 64, figure))
    print(verdict("marginals of a million tokens add up to one to 1e-9", off <= 1e-9, f"{off:.1e}"))
    early = bool(refused["error"]) and refused["grown"] <= 100
    print(verdict("what cannot fit is refused before it is allocated", early, f"{refused['grown']:.0f} MiB were taken"))


if __name__ == "__main__":
    main()
