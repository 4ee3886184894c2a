"""The evaluation of stream transactions again (Wang et al., PVLDB 2011)."""
