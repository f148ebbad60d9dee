"""A label chain behind a small convolutional network: letters read from pixels, word by word.

The network sees one letter at a time and scores the labels; the chain joins them with learnt scores of neighbouring labels.
Any loss of structpred.torch trains both at once. The data: handwritten words (the OCR letters of Kassel, ten folds: fold 0 to
train, nine to test) where the file is given, else strings of scikit-learn's digits. Needs PyTorch.

    python examples/torch_tagger.py                               # strings of digits
    python examples/torch_tagger.py letter.data.gz --loss crf     # handwritten words; or hinge, sparsemap, perturbed
"""

import argparse
import time

import numpy as np
import torch
from digits_demo import draw_strings

import structpred.layers
import structpred.torch
from structpred.oracles.chain import ChainOracle

LOSSES = {
    "crf": (structpred.torch.CRF, {}),
    "hinge": (structpred.torch.Hinge, {}),
    "sparsemap": (structpred.torch.SparseMAPLoss, {}),
    "perturbed": (structpred.torch.PerturbedLoss, {"samples": 4, "sigma": 1.0}),
}


def handwritten_words(path):
    """(images, labels) of fold 0 and of the other folds; an image is 16 x 8."""
    from structpred.io import read_ocr

    words = read_ocr(path)
    letters = sorted({letter for word in words.letters for letter in word})
    y = [np.array([letters.index(letter) for letter in word]) for word in words.letters]
    X = [words.pixels[a:b].reshape(-1, 16, 8) for a, b in zip(words.offsets[:-1], words.offsets[1:], strict=True)]
    train = [i for i, fold in enumerate(words.folds.tolist()) if fold == 0]
    test = [i for i, fold in enumerate(words.folds.tolist()) if fold != 0]
    return [([X[i] for i in part], [y[i] for i in part]) for part in (train, test)], len(letters)


def digit_strings(seed):
    """The same for strings of digits; an image is 8 x 8."""
    from sklearn.datasets import load_digits

    digits, rng = load_digits(), np.random.default_rng(seed)
    parts = []
    for images, labels, n in ((digits.data[:1000], digits.target[:1000], 150), (digits.data[1000:], digits.target[1000:], 100)):
        X, y = draw_strings(images, labels, n, rng)
        parts.append(([x.reshape(-1, 8, 8) for x in X], y))
    return parts, 10


class Tagger(torch.nn.Module):
    """Scores of all parts of a chain for each word, flat: T x L label scores, then L x L transition scores."""

    def __init__(self, height, width, n_labels):
        super().__init__()
        self.letter = torch.nn.Sequential(
            torch.nn.Conv2d(1, 24, 3, padding=1), torch.nn.ReLU(),
            torch.nn.Conv2d(24, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
            torch.nn.Dropout(0.3), torch.nn.Linear(32 * (height // 2) * (width // 2), 128), torch.nn.ReLU(),
            torch.nn.Dropout(0.3), torch.nn.Linear(128, n_labels),
        )  # fmt: skip
        self.transitions = torch.nn.Parameter(torch.zeros(n_labels * n_labels))

    def forward(self, words):
        """words: one array of images a word, of any length: no padding."""
        images = torch.as_tensor(np.concatenate(words), dtype=torch.float32).unsqueeze(1)
        labels = self.letter(images).split([len(word) for word in words])
        return torch.cat([piece for own in labels for piece in (own.reshape(-1), self.transitions)])


def wrong_labels(y, n_labels):
    """Part costs of the Hamming loss: 1 for each wrong label of a position, 0 for transitions."""
    pieces = []
    for own in y:
        costs = np.ones((len(own), n_labels))
        costs[np.arange(len(own)), own] = 0.0
        pieces += [costs.ravel(), np.zeros(n_labels * n_labels)]
    return np.concatenate(pieces)


def main():
    """Train and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="letter.data.gz")
    parser.add_argument("--loss", choices=LOSSES, default="crf")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=16, help="words a step")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    (train, test), n_labels = handwritten_words(given.file) if given.file else digit_strings(given.seed)
    oracle, rng = ChainOracle(), np.random.default_rng(given.seed)
    kind, settings = LOSSES[given.loss]
    loss, net = kind(oracle, **settings), Tagger(*train[0][0].shape[1:], n_labels)
    steps = given.epochs * -(-len(train[0]) // given.batch)
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-5)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    begun = time.process_time()
    for _ in range(given.epochs):
        order = rng.permutation(len(train[0]))
        for start in range(0, len(order), given.batch):
            X, y = ([part[i] for i in order[start : start + given.batch]] for part in train)
            asked = {"costs": wrong_labels(y, n_labels)} if given.loss == "hinge" else {}
            value = loss(net(X), shapes=[(len(own), n_labels) for own in y], gold=y, **asked).mean()
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
            slower.step()
    net.eval()
    with torch.no_grad():
        batch = structpred.layers.Scores.of(oracle, [(len(own), n_labels) for own in test[1]])
        read = batch.decide(net(test[0]).numpy())
    right = np.mean(np.concatenate([own == gold for own, gold in zip(read, test[1], strict=True)]))
    words = np.mean([np.array_equal(own, gold) for own, gold in zip(read, test[1], strict=True)])
    seconds = time.process_time() - begun
    things = ("letters", "words") if given.file else ("digits", "strings")
    print(
        f"{given.loss}: {100 * right:.1f} % of the {things[0]}, {100 * words:.1f} % of the {things[1]} right; {seconds:.0f} CPU s"
    )


if __name__ == "__main__":
    main()
