"""What users match on Spark: its options; sets of queries and rules in a shard."""
