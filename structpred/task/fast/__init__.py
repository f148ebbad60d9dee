"""Compiled steps: blocks of instances, many updates a call, and the table of kernels for one feature map and one oracle."""
