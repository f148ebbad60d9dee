"""Small treebank files that several tests share."""

#: one sentence of CoNLL-U with all that there is: comments, a multiword token, empty nodes, enhanced dependencies, MISC
CONLLU = """\
# newdoc id = d1
# sent_id = s1
# text = Dámelo ya
0.1\tpro\tpro\tPRON\t_\t_\t_\t_\t1:nsubj\t_
1-3\tDámelo\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tDa\tdar\tVERB\tVMM\tMood=Imp|VerbForm=Fin\t0\troot\t0:root\t_
1.1\te\te\tAUX\t_\t_\t_\t_\t1:aux\t_
2\tme\tyo\tPRON\t_\tCase=Dat\t1\tiobj\t1:iobj\t_
3\tlo\tél\tPRON\t_\tCase=Acc\t1\tobj\t1:obj\tGloss=it
4\tya ya\tya\tADV\t_\t_\t1\tadvmod\t1:advmod\t_

# sent_id = s2
1\tNo\tno\tINTJ\tI\t_\t0\troot\t_\t_

"""

CONLLX = """\
1\tDie\tdie\tART\tART\tNom|Sg\t2\tNK\t2\tNK
2\tKatze\tKatze\tN\tNN\tNom|Sg\t3\tSB\t3\tSB
3\tschläft\tschlafen\tV\tVVFIN\t_\t0\tROOT\t0\tROOT
4\t.\t.\t$.\t$.\t_\t0\tPUNC\t0\tPUNC

1\tJa\tja\tITJ\tITJ\t_\t0\tROOT\t0\tROOT

"""

CONLL2008 = """\
1\tpro-life\tpro-life\tJJ\tJJ\tpro\tpro\tJJ\t3\tHMOD\t_\t_
2\t_\t_\t_\t_\t-\t-\tHYPH\t3\tP\t_\t_
3\t_\t_\t_\t_\tlife\tlife\tNN\t4\tNMOD\t_\tA0
4\tgroups\tgroup\tNNS\tNNS\tgroups\tgroup\tNNS\t0\tROOT\tgroup.01\t_

1\tYes\tyes\tUH\tUH\tYes\tyes\tUH\t0\tROOT\t_

"""

CONLL2009 = """\
1\tThe\tthe\tthe\tDT\tDT\t_\t_\t2\t2\tNMOD\tNMOD\t_\t_\t_
2\tcats\tcat\tcat\tNNS\tNN\tnum=pl\tnum=sg\t3\t3\tSBJ\tSBJ\t_\t_\tA0
3\tsleep\tsleep\tsleep\tVBP\tVB\t_\t_\t0\t0\tROOT\tROOT\tY\tsleep.01\t_

1\tYes\tyes\tyes\tUH\tUH\t_\t_\t0\t_\tROOT\t_\t_\t_

"""

SAMPLES = {"conllu": CONLLU, "conllx": CONLLX, "conll2008": CONLL2008, "conll2009": CONLL2009}


def word(number: object, head: object, form: str = "w", **columns: str) -> str:
    """One line of CoNLL-U; `upos`, `deprel` and `misc` may be given."""
    deprel = columns.get("deprel", "root" if str(head) == "0" else "dep")
    return f"{number}\t{form}\t_\t{columns.get('upos', '_')}\t_\t_\t{head}\t{deprel}\t_\t{columns.get('misc', '_')}"


def text_of(*lines: str) -> str:
    """Lines as one sentence, with the blank line behind it."""
    return "".join(f"{line}\n" for line in lines) + "\n"
