"""The engines. Kernels (``kernel_*.py``) are loops over flat arrays; the other files drive them batch by batch."""
