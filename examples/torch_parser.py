"""A dependency parser with a neural network: a recurrent encoder, biaffine arc scores, and the oracle of trees behind them.

Each word looks at each possible head by a biaffine product (Dozat & Manning 2017); the oracle finds the best tree. Any loss of
structpred.torch trains the network through it: the CRF over all trees, the hinge, SparseMAP, the perturbed loss. Sentences of all
lengths go in together, without padding. Needs PyTorch.

    python examples/torch_parser.py                                             # sentences of a toy grammar
    python examples/torch_parser.py train.conllu test.conllu --loss crf         # or hinge, sparsemap, perturbed
"""

import argparse
import time
from collections import Counter

import numpy as np
import torch

import structpred.layers
import structpred.torch
from structpred.oracles.arborescence import ArborescenceOracle

LOSSES = {
    "crf": (structpred.torch.CRF, {}),
    "hinge": (structpred.torch.Hinge, {}),
    "sparsemap": (structpred.torch.SparseMAPLoss, {}),
    "perturbed": (structpred.torch.PerturbedLoss, {"samples": 4, "sigma": 1.0}),
}


def treebank(path):
    """Sentences as (forms, tags, heads)."""
    from structpred.io import read_treebank

    bank = read_treebank(path)
    cuts = list(zip(bank.offsets[:-1].tolist(), bank.offsets[1:].tolist(), strict=True))
    return [(bank.forms[a:b], bank.upos[a:b], bank.heads[a:b]) for a, b in cuts]


def toy_sentences(n, rng):
    """Subject, verb, object and phrases below them: the verb is the root, a preposition's head is the noun before it."""
    found = []
    for _ in range(n):
        forms, tags, heads = [], [], []

        def phrase(above, forms=forms, tags=tags, heads=heads):
            start = len(forms)
            forms += ["the", f"noun{rng.integers(20)}"]
            tags += ["DET", "NOUN"]
            heads += [start + 2, above]
            if rng.random() < 0.4:
                forms.append(f"prep{rng.integers(3)}")
                tags.append("ADP")
                heads.append(start + 2)
                phrase(len(forms))

        phrase(-1)
        verb = len(forms) + 1
        forms.append(f"verb{rng.integers(10)}")
        tags.append("VERB")
        heads.append(0)
        phrase(verb)
        found.append((forms, tags, np.array([verb if head == -1 else head for head in heads])))
    return found


class Parser(torch.nn.Module):
    """Scores of all arcs of each sentence, flat: n x (n + 1), a row a word, a column a head, the root first."""

    def __init__(self, words, tags, size=96):
        super().__init__()
        self.words, self.tags = words, tags
        self.word = torch.nn.Embedding(len(words) + 2, size)
        self.tag = torch.nn.Embedding(len(tags) + 2, 32)
        self.encoder = torch.nn.LSTM(size + 32, size, num_layers=2, bidirectional=True, dropout=0.3)
        self.drop = torch.nn.Dropout(0.3)
        self.head = torch.nn.Sequential(torch.nn.Linear(2 * size, 128), torch.nn.LeakyReLU(0.1), torch.nn.Dropout(0.3))
        self.modifier = torch.nn.Sequential(torch.nn.Linear(2 * size, 128), torch.nn.LeakyReLU(0.1), torch.nn.Dropout(0.3))
        self.bilinear = torch.nn.Parameter(torch.empty(129, 128).uniform_(-0.05, 0.05))

    def forward(self, sentences):
        """One flat tensor for all sentences; number 0 is the root's, 1 an unknown word's."""
        rows = []
        for forms, tags, _ in sentences:
            words = torch.tensor([0, *(self.words.get(form.lower(), 1) for form in forms)])
            if self.training:  # some words are read as unknown, so that unknown words are learnt
                words[(torch.rand(len(words)) < 0.15) & (words > 0)] = 1
            kinds = torch.tensor([0, *(self.tags.get(tag, 1) for tag in tags)])
            rows.append(self.drop(torch.cat([self.word(words), self.tag(kinds)], dim=1)))
        packed = torch.nn.utils.rnn.pack_sequence(rows, enforce_sorted=False)
        hidden = torch.nn.utils.rnn.unpack_sequence(self.encoder(packed)[0])
        scores = []
        for own in hidden:
            own = self.drop(own)
            modifiers = torch.cat([self.modifier(own[1:]), torch.ones(len(own) - 1, 1)], dim=1)
            scores.append((modifiers @ self.bilinear @ self.head(own).T).reshape(-1))
        return torch.cat(scores)


def wrong_heads(sentences):
    """Part costs: 1 for each arc that is not the word's own."""
    pieces = []
    for _, _, heads in sentences:
        costs = np.ones((len(heads), len(heads) + 1))
        costs[np.arange(len(heads)), heads] = 0.0
        pieces.append(costs.ravel())
    return np.concatenate(pieces)


def main():
    """Train and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="two CoNLL-U files: to train, to test")
    parser.add_argument("--loss", choices=LOSSES, default="crf")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16, help="sentences a step")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if len(given.files) not in (0, 2):
        parser.error("expected two files, to train and to test, or none")
    torch.manual_seed(given.seed)
    rng = np.random.default_rng(given.seed)
    train, test = map(treebank, given.files) if given.files else (toy_sentences(200, rng), toy_sentences(100, rng))
    seen = Counter(form.lower() for forms, _, _ in train for form in forms)
    words = {form: k + 2 for k, form in enumerate(sorted(form for form, times in seen.items() if times > 1))}
    tags = {tag: k + 2 for k, tag in enumerate(sorted({tag for _, kinds, _ in train for tag in kinds}))}
    oracle = ArborescenceOracle()
    kind, settings = LOSSES[given.loss]
    loss, net = kind(oracle, **settings), Parser(words, tags)
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3, betas=(0.9, 0.9))
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, given.epochs * -(-len(train) // given.batch))
    begun = time.process_time()
    for _ in range(given.epochs):
        order = rng.permutation(len(train))
        for start in range(0, len(order), given.batch):
            block = [train[i] for i in order[start : start + given.batch]]
            scores, asked = net(block), {}
            if given.loss == "hinge":
                asked["costs"] = wrong_heads(block)
                # A hinge compares with one tree. What a network has half learnt still lets some wrong tree win, so the fastest
                # way down is to shrink all scores to 0, where its product of factors has no gradient. Noise as large as the
                # cost of an arc makes it a mean over many trees, which half a feature lowers, too.
                scores = scores + torch.randn_like(scores)
            shapes, gold = [(len(own[2]),) for own in block], [own[2] for own in block]
            value = loss(scores, shapes=shapes, gold=gold, **asked).sum() / sum(len(own) for own in gold)
            optimiser.zero_grad()
            value.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optimiser.step()
            slower.step()
    net.eval()
    with torch.no_grad():
        batch = structpred.layers.Scores.of(oracle, [(len(own[2]),) for own in test])
        trees = batch.decide(net(test).numpy())
    right = np.mean(np.concatenate([tree == own[2] for tree, own in zip(trees, test, strict=True)]))
    print(f"{given.loss}: {100 * right:.2f} % of the heads right; {time.process_time() - begun:.0f} CPU s")


if __name__ == "__main__":
    main()
