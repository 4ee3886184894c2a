"""What command lines and Python calls of every kind of run print, write and return, recorded and compared.

``python -m experiments.recordings record FOLDER`` makes a recording, ``compare FOLDER FOLDER`` holds two against each
other: what differs has changed for users.
"""
