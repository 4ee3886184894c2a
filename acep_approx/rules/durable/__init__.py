"""The store of active rules in a file of SQLite, which other tools read: one transaction for each checkpoint.

layout      names, types and statements of SQL; values of Arrow to values of SQLite, and back
database    the connection; the lock of a run, which dies with its process; what is refused, as errors with codes
notes       what one transaction writes; our own tables: whose file it is, the state of the run, matches that nobody has
            taken, calls that nobody has made
store       whether the file is one of these rules, whole, with tables as they were declared; ``Durable``, which is all
            of it
"""
