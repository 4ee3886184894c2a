"""Circles of rules that are run in one kernel, in the order of the stream: see ``kernels.rules.lockstep``."""
