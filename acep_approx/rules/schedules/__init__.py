"""Concurrency control of stream transactions, as plain data: three schedulers, their lock tables, what they must keep.

Source: Wang, Rundensteiner and Ellison, "Active Complex Event Processing over Event Streams", PVLDB 4(10) 2011,
sections 4 and 5 and appendices E and F. What differs is said where it stands, and in
``docs/how-it-works/transactions.md``.
Nothing here runs in threads: a scheduler is asked whether an operation may be done now, and told what was done.
"""
