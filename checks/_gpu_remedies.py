"""What to do about GPUs and their driver."""

from clustercheck.check import Remedy

LOAD_DRIVER = Remedy(
    "See why the module is not loaded: `modprobe nvidia` and `dmesg | grep -iE 'nvrm|nvidia'`."
    " After a kernel update it has to be built anew (`dkms status`); under Secure Boot it has to be"
    " signed; nouveau has to be kept out (a blacklist file and a new initramfs). Then boot the"
    " node when it is drained. If nobody is to use the GPU, say `count = 0` for this node.",
    "§4.1.4",
    disturbs=True,
)
SAME_VERSION = Remedy(
    "The driver was updated under a running system. Drain the node and boot it, or, when no process"
    " has a GPU open, unload the nvidia modules and load them anew. Hold the driver's packages"
    " back from unattended updates.",
    "§4.1.4",
    disturbs=True,
)
SEE_HANG = Remedy(
    "Keep new jobs off the node and look at the kernel's log (`dmesg | grep -iE 'xid|nvrm'`) and at"
    " what the driver waits for (`ps axo pid,stat,wchan:30,args | grep ' D'`). A process that"
    " waits in the driver cannot be ended: boot the node when it is drained, with the power off"
    " for a moment if the GPU does not come back. Where a driver that wakes up for each call is"
    " only slow, nvidia-persistenced keeps it awake.",
    "§5.1",
    disturbs=True,
)
SEE_LOST = Remedy(
    "Keep new jobs off the node and look for Xid messages (`dmesg | grep -i xid`): 79 is a GPU that"
    " has fallen off the bus. Drain the node and boot it, with the power off for a moment. A GPU"
    " that is lost again is for the vendor: reseat it, look at its power and its cooling.",
    disturbs=True,
)
SEE_DEVICES = Remedy(
    "See what the driver says of each GPU (`dmesg | grep -iE 'nvrm|xid'`), whether it is on the PCI"
    " bus (`lspci -d 10de:`), and whether the driver's branch and kernel module (open or"
    " proprietary) still drive it: `clustercheck cuda VERSION` has both. In a container see which"
    " devices it was given.",
    "§4.1.4",
)
SEE_NVML = Remedy(
    "In a container: start it anew, since a reload of systemd has taken its devices away. On the"
    " node itself: look at `dmesg | grep -iE 'nvrm|xid'` and at the rights of /dev/nvidia*.",
    "§4.1.4",
)
GIVE_RIGHTS = Remedy(
    "Let the login user open /dev/nvidia* (its mode, or the group video), or use become = sudo."
)
GET_TOOL = Remedy(
    "Install the driver's own nvidia-smi: on RHEL and SUSE it is in the package of the driver's"
    " CUDA part, on Debian in nvidia-smi, on Ubuntu in nvidia-utils-BRANCH, of the same version as"
    " the kernel module.",
    "§4.1.4",
)
GET_LIBCUDA = Remedy(
    "Install the user-space part of the driver in the version of the kernel module (libcuda.so.1:"
    " libcuda1 on Debian, libnvidia-compute on Ubuntu, nvidia-driver-cuda-libs on RHEL) and run"
    " ldconfig: without it no CUDA program finds a GPU.",
    "§4.1.4",
)
RIGHT_MODULE = Remedy(
    "Install the kernel module that drives the GPU: the open one from Turing on, which Blackwell"
    " must have; the proprietary one for Maxwell, Pascal and Volta, whose last branch is 580. Boot"
    " the node when it is drained.",
    "§4.1.4",
    disturbs=True,
)
NEWER_DRIVER = Remedy(
    "Install a newer driver branch when the node is drained, and boot it; any that still drives"
    " the GPU runs older CUDA versions, too. On data-centre boards the package cuda-compat of the"
    " wanted version may do instead, without a boot; never on GeForce. `clustercheck cuda"
    " VERSION` says which branches. conda environments and containers bring the toolkit with"
    " them, but use the node's driver.",
    "§4.1.4",
    disturbs=True,
)
OTHER_CUDA = Remedy(
    "Use a CUDA version that makes code for this GPU, or give its jobs to other nodes:"
    " `clustercheck cuda VERSION` says which compute capabilities each has.",
    "§4.1.4",
)
SET_VERSION = Remedy(
    "Set require_cuda to a version that the table has (`clustercheck cuda` lists them), or judge"
    " the driver by a newer clustercheck.",
    "§4.1.4",
)
# "Flash the InfoROM to clear this corruption": DCGM of DCGM_FR_CORRUPT_INFOROM.
FLASH_IT = Remedy(
    "The GPU goes on working, but may forget which rows of its memory are out of use. When the node"
    " is drained, boot it with the power off for a moment. If the warning of nvidia-smi stays,"
    " have the vendor write the infoROM anew or replace the board.",
    disturbs=True,
)
FIND_GPU = Remedy(
    "See whether the missing GPU is on the PCI bus (`lspci -d 10de:`) and what the kernel says of"
    " it (`dmesg | grep -iE 'nvrm|xid'`): one that has fallen off the bus comes back by a boot with"
    " the power off, or is broken. Slurm's Gres= in slurm.conf must name the number that is there."
    " If it is right as it is, set count for this node or group.",
    "§2.2",
)
RIGHT_MODEL = Remedy(
    "Put the node into the group whose model it has, or set model for it, so that jobs that ask for"
    " a type get that type: gres.conf has one Type= for each model.",
    "§2.2",
)
FIND_HOLDER = Remedy(
    "Keep new jobs off the node. As root look for holders that nvidia-smi does not list, without"
    " ending anything yet: `fuser -v /dev/nvidia*`, and on a container host its containers. If"
    " nobody holds it and the node is drained, reset the GPU as root with nvidia-smi (all GPUs of"
    " an NVLink group together, none that shows a display), or boot the node.",
    "§5.1",
    disturbs=True,
)
SEE_WHOSE = Remedy(
    "See whose the process is and which job or container it belongs to; it is no fault if it is"
    " meant to be there. Ask its owner to end it; do not end what belongs to a running job.",
    "§5.1",
)
END_PARENT = Remedy(
    "A process that is dead but not yet collected (Z) goes when its parent collects it or ends: see"
    " to the parent, which is mostly the job's own step. One that waits in the kernel (D) cannot be"
    " ended by any signal: look at what it waits on, a file server or the GPU's driver. If it"
    " stays, drain the node and boot it.",
    "§5.1",
    disturbs=True,
)
LOOK_AS_ROOT = Remedy(
    "Run it on the node itself, not in a container, and with become = sudo: only root sees which"
    " processes of others have a GPU open.",
    "§5.1",
)
NEWER_BRANCH = Remedy(
    "Plan a change to a branch that is still kept up; `clustercheck cuda VERSION` lists branches"
    " and when each ends. Mind the last branch of old GPUs: 470 for Kepler, 580 for Maxwell, Pascal"
    " and Volta.",
    "§4.1.4",
    disturbs=True,
)
