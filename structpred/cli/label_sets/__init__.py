"""Multi-label models in the shell: training, results and pages; kinds/label_sets.py describes them."""
