"""The command line: ``acep run``, ``check``, ``explain``, ``demo``. Data on stdout, words on stderr."""
