"""The options of the commands, in groups: one dataclass for each panel of ``--help``."""
