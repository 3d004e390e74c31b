"""What to do about a GPU whose health is in doubt."""

from clustercheck.check import Remedy

FATAL_XID = Remedy(
    "Keep new jobs off the node and drain it; then boot it, with the power off for a moment. A GPU"
    " that fails again is for the vendor: look at its power cable, its seat and its cooling first."
    " What lies behind after such a boot is in `journalctl -k -b -1 -g NVRM`.",
    disturbs=True,
)
RESET_FOR_XID = Remedy(
    "Keep new jobs off the GPU, let its jobs end, and see that nobody has it open (`fuser -v"
    " /dev/nvidia*` as root). Then reset it as root with nvidia-smi, all GPUs of an NVLink group"
    " together, or boot the node. Where that has been done since, set xid_hours to less. If it"
    " comes again, it is for the vendor.",
    "§5.1",
    disturbs=True,
)
DRAIN_FOR_XID = Remedy(
    "Keep new jobs off the node and let its jobs end. Look at the other Xid beside it, at ECC"
    " errors and row remapping (`nvidia-smi -q -d ECC,ROW_REMAPPER`) and, of NVLink, at its links"
    " (`nvidia-smi nvlink -s`). Mostly a reset of the GPU or a boot of the node is enough; one that"
    " comes again is for the vendor.",
    "§5.1",
    disturbs=True,
)
SEE_XID = Remedy(
    "The GPU goes on working. Look at which job was hit and whether it comes again; reset the GPU"
    " when it is idle. A code that is not known here is in NVIDIA's Xid catalogue.",
    "§5.1",
    disturbs=True,
)
READ_LOG = Remedy(
    "Let the login user read the kernel's log (kernel.dmesg_restrict=0, or the group"
    " systemd-journal), or use become = sudo. In a container look on its host."
)
SEE_ECC = Remedy(
    "A program that ran then has got wrong data or was ended: tell its owner. Look whether a row"
    " was remapped (`nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT`) and reset the GPU when it"
    " is idle, which sets the count back. If it goes on counting after that, it is for the vendor.",
    "§5.1",
    disturbs=True,
)
REPLACE = Remedy(
    "Keep new jobs off the node, save `nvidia-bug-report.sh` and ask the vendor for another board:"
    " what can be repaired in the GPU's memory has been used up, and no reset brings it back.",
)
RESET_WHEN_IDLE = Remedy(
    "Keep new jobs off the GPU, and reset it when it is idle, or boot the node: only then is the"
    " bad memory out of use. Until then the same place may be hit again.",
    "§5.1",
    disturbs=True,
)
DO_AS_ASKED = Remedy(
    "Keep new jobs off the node, look for the Xid behind it (`dmesg | grep -i xid`), and when its"
    " jobs have ended do what the driver asks for: reset the GPU, or boot the node. Drain P2P means"
    " that nothing may go between this GPU and others; jobs on one GPU may end.",
    "§5.1",
    disturbs=True,
)
SEAT_IT = Remedy(
    "Compare with what the board and the slot can (`lspci -vv -s ADDRESS`, LnkCap and LnkSta)."
    " Fewer lanes than before mean a contact: when the node is drained, reseat the GPU and its"
    " riser and boot it. If the slot is made so, set pcie_width.",
    disturbs=True,
)
SEE_GENERATION = Remedy(
    "Look at the slot's setting in the BIOS and at `lspci -vv -s ADDRESS` (LnkSta, and DevSta for"
    " errors) while the GPU works: a link that had too many errors goes on at a lower rate. When"
    " the node is drained, reseat the GPU and its riser.",
    disturbs=True,
)
SEE_LINKS = Remedy(
    "Look for NVLink errors (`nvidia-smi nvlink -e`, Xid 74 and 144 to 150 in `dmesg`), and where"
    " there are NVSwitches at the fabric manager (`systemctl status nvidia-fabricmanager`). A boot"
    " when the node is drained trains the links anew; a bridge may have to be reseated. If the"
    " links are wired so, set nvlink_links for this kind of node, 0 where NVLink is not used.",
    disturbs=True,
)
COOL_IT = Remedy(
    "Look at the temperature and the fans (`nvidia-smi -q -d TEMPERATURE,PERFORMANCE`, `ipmitool"
    " sensor`), at the room's air and at dust. Jobs run slower meanwhile, and the slowest GPU of a"
    " job sets the pace for all.",
)
SEE_POWER = Remedy(
    "Look at the node's power supplies and at a power limit of the BMC or the rack (`ipmitool sdr"
    " type 'Power Supply'`): the board was told from outside to slow down, or its cable is loose."
    " Jobs run slower meanwhile.",
)
START_FABRIC = Remedy(
    "Look at `systemctl status nvidia-fabricmanager` and its log: it has to run, in the very"
    " version of the driver. Until the fabric is set up, CUDA programs end with error 802.",
    disturbs=True,
)
SEE_ANSWER = Remedy(
    "See what `nvidia-smi -q` says by hand, and look at what is found of the driver first."
)
