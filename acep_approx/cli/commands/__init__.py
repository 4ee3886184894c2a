"""The commands of ``acep``, one file each."""
