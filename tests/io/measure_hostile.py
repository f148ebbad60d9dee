"""What hostile input costs each reader, in seconds of the processor and in memory; prints the worst of each.

    python tests/io/measure_hostile.py mutations 50000
    python tests/io/measure_hostile.py long 50 [READER ...]

`mutations N`: N mutations of each reader's files. `long MB`: files of a single line or of very many short ones, of so many
megabytes, and gzip bombs of 4 MB, each in a process of its own; memory is what the process needs beyond a reader that has read
a small file, per byte of the file, or of what it unpacks to where that is within the limit.
"""

import gzip
import itertools
import json
import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from hostile_readers import READERS, mutated

from structpred.errors import DataError, ParameterError

#: what a large file consists of: (in front, again and again, behind)
LARGE = {
    "one letter": (b"", b"a", b""),
    "words": (b"", b"ab cd ", b""),
    "tabs": (b"", b"\t", b""),
    "spaces": (b"a", b" ", b"'"),
    "quotes": (b"'", b"\\'", b""),
    "digits": (b"O\ta:", b"9", b"x"),
    "escapes": (b"O\t", b"\\:", b"x"),
    "attributes": (b"O", b"\ta:1", b""),
    "pairs": (b"1", b" 1:1", b""),
    "labels": (b"", b"ab,", b" 1:1"),
    "macros": (b"U", b"%x[0,0]", b""),
    "atoms": (b"", b"h.upos ", b"|"),
    "arff values": (b"@relation r\n@attribute l1 {0,1}\n@attribute l2 {0,1}\n@data\n", b"0,", b"1"),
    "arff nominal": (b"@relation r\n@attribute a {", b"ab,", b"c}\n@data\n"),
    "arff sparse": (b"@relation r\n@attribute a numeric\n@data\n{", b"0 1,", b"}"),
    "clus path": (b"@relation r\n@attribute x hierarchical ", b"a/", b"a\n@data\n"),
    "xml": (b"<labels><label name='", b"a", b"'/></labels>"),
    "xml nested": (b"<labels>", b"<label name='a'>", b""),
    "uai": (b"MARKOV 1 2 ", b"1 ", b""),
    "uai digits": (b"MARKOV ", b"9", b""),
    "treebank columns": (b"1", b"\t_", b""),
    "line ends": (b"", b"\n", b""),
    "short lines": (b"", b"a\n", b""),
    "lines of two": (b"", b"ab\n", b""),
    "CR LF": (b"", b"a\r\n", b""),
    "sentences": (b"", b"a b\n\n", b""),
    "libsvm rows": (b"", b"1 1:1\n", b""),
    "pairs of labels": (b"", b"a\tb\n", b""),
    "sequences": (b"", b"a\n\n", b""),
    "rows of many words": (b"", b"a " * 5000 + b"\n", b""),
    "broken tags": (b"B-ab\n", b"I-ac\nI-ab\n", b""),
    "repeated sentences": (b"", b"ab cd ef\n\n", b""),
    "documents": (b"", b"-DOCSTART- O\n\nab cd\n\n", b""),
    "repeated trees": (b"", b"1\ta\t_\t_\t_\t_\t0\tb\t_\t_\n\n", b""),
    "word lines": (b"", b"1\ta\tb\tX\tY\t_\t0\troot\t_\t_\n\n", b""),
}


def tiny_tables(size: int, scope: bytes, table: bytes) -> bytes:
    """A model in the UAI format whose tables have an entry each."""
    n = size // (len(scope) + len(table))
    return b"MARKOV 1 1 %d " % n + scope * n + table * n


def different_words(size: int, line: bytes = b"%s\n", times: int = 1) -> bytes:
    """Lines with one word of five letters, so many times, no two of them the same."""
    letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    words = map(bytes, itertools.product(letters, repeat=5))
    return b"".join(line % ((word,) * times) for word in itertools.islice(words, size // (len(line) + 3 * times)))


#: and files that are made as a whole
WHOLE = {
    "uai tables": lambda size: tiny_tables(size, b"1 0 ", b"1 1 "),
    "uai constants": lambda size: tiny_tables(size, b"0 ", b"1 1 "),
    "different words": different_words,
    "different attributes": lambda size: different_words(size, b"O\tw=%s\n"),
    "different pairs": lambda size: different_words(size, b"%s\tw=%s\n\n", 2),
    "different relations": lambda size: different_words(size, b"1\t%s\t_\t_\t_\t_\t0\t%s\t_\t_\n\n", 2),
}


def cost(name: str, path: str, small: str) -> tuple[float, int, str]:
    """CPU seconds and bytes that reading a file takes, and how it ends."""
    reader = READERS[name][1]
    reader(Path(small))  # imports and the like
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    try:
        reader(Path(path))
        end = "read"
    except (DataError, ParameterError) as error:
        end = str(error).removeprefix(path)[:90]
    seconds = time.process_time() - start
    return seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10, end


def _chosen(only: list[str]) -> list[tuple[str, Any]]:
    return [(name, entry) for name, entry in READERS.items() if not only or name in only]


def mutations(n: int, only: list[str]) -> None:
    """The worst input of n for each reader."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hostile"
        for name, (seeds, reader) in _chosen(only):
            rng, slowest, grown, read, begun = random.Random(2), (0.0, b""), 0, 0, time.process_time()
            path.write_bytes(seeds[0])
            reader(path)
            for _ in range(n):
                data = mutated(rng, rng.choice(seeds))
                path.write_bytes(data)
                before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
                try:
                    reader(path)
                    read += 1
                except (DataError, ParameterError):
                    pass
                except Exception as error:  # what must not be: told, and the run goes on
                    print(f"{name:<20} {type(error).__name__}: {error}: {data!r:.300}", flush=True)
                slowest = max(slowest, (time.process_time() - start, data))
                grown = max(grown, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
            total = time.process_time() - begun
            worst = f"slowest {slowest[0]:.3f} s, most memory {grown / 1024:.0f} MB"
            print(f"{name:<20} {n} inputs, {read} read, {total:6.0f} s; {worst}", flush=True)


def large(megabytes: int, only: list[str]) -> None:
    """The worst of the large files for each reader; those over a second a megabyte or over 20 times their size are named."""
    with tempfile.TemporaryDirectory() as folder:
        small, path = Path(folder) / "small", Path(folder) / "large"
        for name, (seeds, _) in _chosen(only):
            small.write_bytes(seeds[0])
            worst = [0.0, 0.0]
            for kind, (front, again, behind) in LARGE.items():
                path.write_bytes(front + again * ((megabytes << 20) // len(again)) + behind)
                _measure(name, kind, path, small, megabytes << 20, worst)
            for kind, made in WHOLE.items():
                path.write_bytes(made(megabytes << 20))
                _measure(name, kind, path, small, megabytes << 20, worst)
            packed = gzip.compress(b"a" * (1 << 20), mtime=0) * 4000
            path.write_bytes(packed)
            _measure(name, "gzip bomb of 4 GB", path, small, len(packed), worst)
            print(f"{name:<20} worst: {worst[0]:.2f} s a MB, {worst[1]:.1f} times the size", flush=True)


def _measure(name: str, kind: str, path: Path, small: Path, size: int, worst: list[float]) -> None:
    seconds, memory, end = _in_a_child(name, str(path), str(small))
    rates = [seconds / (size / (1 << 20)), memory / size]
    worst[:] = map(max, worst, rates)
    if rates[0] > 1 or rates[1] > 20 or end.startswith("failed"):
        print(f"{name:<20} {kind}: {rates[0]:.2f} s a MB, {rates[1]:.1f} times: {end}", flush=True)


def _in_a_child(name: str, path: str, small: str) -> tuple[float, int, str]:
    """What `cost` says in a fork of this process: the peak of memory is its own, and the imports are there already."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        try:
            os.write(writing, json.dumps(cost(name, path, small)).encode())
        except BaseException as error:
            os.write(writing, json.dumps((0.0, 0, f"failed: {type(error).__name__}: {error}"[:300])).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    seconds, memory, end = json.loads(told or '[0, 0, "failed: killed"]')
    return seconds, memory, end


if __name__ == "__main__":
    {"mutations": mutations, "long": large}[sys.argv[1]](int(sys.argv[2]), sys.argv[3:])
