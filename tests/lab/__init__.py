"""A cluster on one machine: nodes with real daemons and real faults (docs/lab.md)."""
