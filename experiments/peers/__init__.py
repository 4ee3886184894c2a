"""The workloads on which other engines were measured."""
