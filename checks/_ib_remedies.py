"""What to do about an InfiniBand port that is missing, down or slow."""

from clustercheck.check import Remedy

FIND_ADAPTER = Remedy(
    "See whether the adapter is there (`lspci -d 15b3:` for NVIDIA's, `lspci | grep -i infiniband`)"
    " and its driver loaded (`lsmod | grep mlx5_ib`, `dmesg | grep -i mlx5`). An adapter that is"
    " there without a driver may have got a new kernel without its modules; one that is gone needs"
    " its slot looked at. A port set to Ethernet does not count: `mlxconfig -d DEVICE query` has"
    " LINK_TYPE."
)
PLUG_IN = Remedy(
    "Polling means that nothing answers at the other end: look at the cable, both its plugs, and"
    " whether the switch port is on (`ibswitches`, `iblinkinfo` on a node that works). A port that"
    " is Disabled is switched on again with `ibportstate`. One that trains for ever wants another"
    " cable."
)
START_MANAGER = Remedy(
    "The cable is well; no subnet manager answers. See on a node that works who it is"
    " (`sminfo`), and that it runs: opensm on a node, or the switch's own. Where only this port is"
    " left out, look in the manager's log for its GUID (`ibstat`), and for a partition that it is"
    " not in."
)
FASTER = Remedy(
    "Compare what the port can do and does (`iblinkinfo`, `mlxlink -d DEVICE` shows each lane). One"
    " lane of four, or half the rate, is mostly a plug that is not quite in, or a bent fibre; then"
    " a cable of an older generation, a splitter, or a switch port that is set lower. Reseat it"
    " while the node is drained. Where the rate is meant, say so with `rate` for these nodes.",
    disturbs=True,
)
CLEAN = Remedy(
    "Look twice, some minutes of traffic apart (`perfquery -x`, or the files below"
    " /sys/class/infiniband/DEVICE/ports/1/counters). Where the number grows, clean or change the"
    " cable, then try another switch port; `mlxlink -d DEVICE -m` shows an optic's light. Where it"
    " does not, the cause is past: the count begins anew at the next boot."
)
HOLD_LINK = Remedy(
    "See when it was lost (`journalctl -k -g infiniband`, and the log of the subnet manager)."
    " Work on the switch and boots are well; else change the cable, then the switch port."
)
SAME_FIRMWARE = Remedy(
    "Bring the adapters to one firmware (`mlxfwmanager --query` shows what is there and at hand):"
    " mixed ones make faults that come and go. A new firmware counts from the next reset of the"
    " adapter, so do it while the node is drained.",
    disturbs=True,
)
