"""A trained tagger of CoNLL-2000 as one file of ONNX: onnxruntime gives the tags of the kernels for every test sentence."""

import gzip
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from structpred.torch import ChainCRF, Scan  # noqa: E402

MISSING = ", ".join(name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None)
TRAINED_ON = 4000


def read(path: Path) -> list[list[list[str]]]:
    """Sentences of word, part of speech, chunk tag."""
    with gzip.open(path, "rt") as lines:
        blocks = lines.read().strip().split("\n\n")
    return [[line.split() for line in block.splitlines()] for block in blocks]


class Chunker(torch.nn.Module):  # type: ignore[misc]
    """Embeddings of words and parts of speech, a convolution over three tokens, a chain."""

    def __init__(self, sizes: list[int], backend: Scan | None = None) -> None:
        super().__init__()
        self.word, self.pos = torch.nn.Embedding(sizes[0] + 1, 32), torch.nn.Embedding(sizes[1] + 1, 16)
        self.around, self.out = torch.nn.Conv1d(48, 64, 3, padding=1), torch.nn.Linear(64, sizes[2])
        self.crf = ChainCRF(sizes[2], backend=backend)

    def scores(self, words: Any, pos: Any) -> Any:
        """Of chunk tags."""
        embedded = torch.cat((self.word(words), self.pos(pos)), 2)
        return self.out(torch.relu(self.around(embedded.transpose(1, 2)).transpose(1, 2)))

    def forward(self, words: Any, pos: Any, mask: Any) -> Any:
        """The best tags."""
        return self.crf.best_tags(self.scores(words, pos), mask)


def padded(sentences: list[list[list[str]]], names: list[dict[str, int]], length: int) -> tuple[Any, Any, Any, Any]:
    """Words and parts of speech, 0 where unknown; tags, -100 where there is none; the mask."""
    words, pos, tags = (torch.full((len(sentences), length), fill) for fill in (0, 0, -100))
    for i, sentence in enumerate(sentences):
        for k, column in enumerate((words, pos, tags)):
            column[i, : len(sentence)] = torch.tensor([names[k].get(token[k], -100 if k == 2 else 0) for token in sentence])
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    return words, pos, tags, torch.arange(length) < lengths[:, None]


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {MISSING}")
def test_same_tags_of_all_test_sentences(data_dir: Path, tmp_path: Path) -> None:
    """2,012 sentences, padded to the longest of them, in batches of 16; the network has learned something."""
    import onnxruntime

    torch.manual_seed(0)
    train, test = (read(data_dir / "conll2000" / f"{name}.txt.gz") for name in ("train", "test"))
    values = [sorted({token[k] for sentence in train for token in sentence}) for k in range(3)]
    names = [{name: i + (k < 2) for i, name in enumerate(own)} for k, own in enumerate(values)]
    sizes, longest = [len(own) for own in names], max(map(len, test))
    net = Chunker(sizes)
    steps = torch.optim.Adam(net.parameters(), 0.01)
    for i in range(0, TRAINED_ON, 32):
        words, pos, tags, mask = padded(train[i : i + 32], names, max(map(len, train[i : i + 32])))
        steps.zero_grad()
        (-net.crf(net.scores(words, pos), tags, mask, reduction="token_mean")).backward()
        steps.step()
    scan, size = Chunker(sizes, Scan()), torch.export.Dim("size", min=2, max=512)
    scan.load_state_dict(net.state_dict())
    words, pos, _, mask = padded(test[:16], names, longest)
    file, inputs = tmp_path / "chunker.onnx", ["words", "pos", "mask"]
    torch.onnx.export(
        scan.eval(), (words, pos, mask), file, dynamo=True, verbose=False, dynamic_shapes=({0: size},) * 3, input_names=inputs
    )
    session, same, right, tokens = onnxruntime.InferenceSession(file), 0, 0, 0
    for i in range(0, len(test), 16):
        words, pos, tags, mask = padded(test[i : i + 16], names, longest)
        given = dict(zip(inputs, (own.numpy() for own in (words, pos, mask)), strict=True))
        (found,) = session.run(None, given)
        same += int((found == net(words, pos, mask).numpy()).all(1).sum())
        right += int((found == tags.numpy())[mask.numpy()].sum())
        tokens += int(mask.sum())
    assert same == len(test) == 2012
    assert right > 0.9 * tokens
