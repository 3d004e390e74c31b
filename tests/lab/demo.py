"""A cluster with faults such as there are, for a first look at what clustercheck says of them."""

from tests.lab import faults
from tests.lab.spec import Spec, healthy

NODES: list[Spec] = [
    *healthy(4),
    faults.dead("node05"),
    faults.follows_late("node06", 3),
    faults.tmp_filled("node07"),
    faults.jumbo_without_switch("node08"),
    faults.dead_name_server("node09"),
    faults.hosts_contradict("node10"),
    faults.tmp_read_only("node11"),
    *healthy(12)[11:],
]
