"""Multi-label data: ARFF, CLUS, Mulan, LIBSVM and NumPy files."""
