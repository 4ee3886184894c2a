"""Kernels of the runs engine."""
