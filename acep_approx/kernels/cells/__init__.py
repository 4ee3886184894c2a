"""Kernels of the cells engine."""
