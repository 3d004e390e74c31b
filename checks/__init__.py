"""The checks: one a file, found by clustercheck.registry."""
