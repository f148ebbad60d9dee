"""Phrase chunking from columns: rows of (word, part of speech), built-in feature templates, a chain.

python examples/chunking.py
"""

from structpred.models import ChainLabeler

COLUMNS = """
the DT B-NP     | a DT B-NP      | dogs NNS B-NP   | my PRP$ B-NP
old JJ I-NP     | child NN I-NP  | chase VBP B-VP  | friend NN I-NP
dog NN I-NP     | saw VBD B-VP   | the DT B-NP     | has VBZ B-VP
was VBD B-VP    | a DT B-NP      | red JJ I-NP     | seen VBN I-VP
barking VBG I-VP | ship NN I-NP  | ball NN I-NP    | it PRP B-NP
"""
sentences = [
    [cell.split() for cell in column] for column in zip(*(line.split("|") for line in COLUMNS.split("\n")[1:-1]), strict=True)
]

X = [[(word, pos) for word, pos, _ in sentence] for sentence in sentences]
y = [[chunk for _, _, chunk in sentence] for sentence in sentences]
model = ChainLabeler(trainer="bcfw", C=0.1, max_iter=100, tol=0.01, template="chunking", random_state=0).fit(X, y)

new = [("a", "DT"), ("red", "JJ"), ("ship", "NN"), ("was", "VBD"), ("seen", "VBN")]
for (word, pos), chunk in zip(new, model.predict([new])[0], strict=True):
    print(f"{word:<8} {pos:<5} {chunk}")
print(model.certificate_)
