"""Compiled steps: blocks of instances, visits of many, and the table of kernels for one feature map and one oracle."""
