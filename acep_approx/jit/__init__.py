"""How kernels run: as Python until they are compiled, which another process does."""
