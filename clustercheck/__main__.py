"""`python -m clustercheck` is `clustercheck`."""

from clustercheck.cli import main

main()
