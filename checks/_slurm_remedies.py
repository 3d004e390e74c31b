"""What to do about Slurm's findings. None of them resumes a node without a look first."""

from clustercheck.check import Remedy

ASK_WHO = Remedy(
    "Somebody has taken the node out of service for the reason given: ask them before you change"
    " anything. `scontrol show node` has the reason whole, and it is lost when the node is resumed."
)
OWN_DRAIN = Remedy(
    "The node was drained after a finding of these checks. When they pass again, look that nothing"
    " else is wrong with it, and resume it by hand."
)
LOOK_FIRST = Remedy(
    "Find the cause that the reason names, in slurmd's log on the node and in slurmctld's"
    " (`scontrol show config` has SlurmdLogFile and SlurmctldLogFile), and mend it. Resume the node"
    " by hand after that.",
    "§4.4",
)
KILL_TASK = Remedy(
    "A process of a job could not be ended: mostly it waits in the kernel for a file system or a"
    " device. `ps -eo pid,stat,wchan:32,comm` shows those in state D; mend what they wait for. Boot"
    " the node when it is drained if they stay. A longer UnkillableStepTimeout helps where they go"
    " by themselves.",
    disturbs=True,
)
KILL_TASK_GONE = Remedy(
    "A process of a job could not be ended, and none waits in the kernel any more. Look in slurmd's"
    " log for the job and in the kernel's log for what it waited for; if that is mended, resume the"
    " node by hand. A longer UnkillableStepTimeout helps where it happens again."
)
SPOOL_FULL = Remedy(
    "Make room on the file system that holds SlurmdSpoolDir: look what takes it with `du -xsh`, as"
    " a rule logs or core files beside it. Slurm's own files there belong to jobs that run: do not"
    " delete them. Resume the node by hand if Slurm has drained it.",
    "§5.5",
)
SPOOL_GONE = Remedy(
    "There is room again, so the cause is gone for now. Look what had filled the file system"
    " (logs, core files), so that it does not come back, and resume the node by hand."
)
SPOOL_MODE = Remedy(
    "Job scripts and their environment are kept there, and any user may replace them: give the"
    " directory to SlurmdUser (root, as a rule) with mode 0755."
)
SPOOL_MISSING = Remedy(
    "Make the directory that SlurmdSpoolDir names, owned by SlurmdUser (root, as a rule), mode"
    " 0755, on a local disk. Where it is on a file system of its own, look why that is not mounted."
)
GRES = Remedy(
    "Count the GPUs with `nvidia-smi -L` and look in the kernel's log for one that was lost. If the"
    " number is right, correct Gres= of the node in slurm.conf and File= in gres.conf; both must"
    " say the same. A GPU that is lost comes back with a boot, when the node is drained.",
    "§2.2",
    disturbs=True,
)
HARDWARE = Remedy(
    "The node has less than slurm.conf says. `slurmd -C` prints what it has: if memory or"
    " processors are missing, look for failed hardware or a changed BIOS setting; if slurm.conf"
    " asks for too much (RealMemory must be a little less than is installed), correct it there."
)
VERSION = Remedy(
    "Bring the node's slurmd to the release of its slurmctld. slurmctld is brought up to date"
    " before the nodes, and takes those of the two major releases before its own (three from 24.11"
    " on), none newer.",
    disturbs=True,
)
REBOOTED = Remedy(
    "Find out why the node went down before you resume it: `last -x`, the journal of the boot"
    " before (`journalctl -b -1 -e`), the BMC's event log. ReturnToService=2 lets nodes come back"
    " without this look."
)
SILENT = Remedy(
    "Look on the node whether slurmd runs and what its log says; then whether the controller"
    " reaches the node's name at SlurmdPort (6818) and the node the controller's at 6817: a"
    " firewall, a name that resolves elsewhere, a clock or a Munge key that differs.",
    "§4.4",
)
REGISTER = Remedy(
    "Wait a minute if slurmctld was started just now. Otherwise start slurmd on the node, and look"
    " in its log why it does not register."
)
PLANNED = Remedy(
    "Nothing, if the work is planned: `scontrol show reservation` and `scontrol show node` say who"
    " planned it and until when."
)
START_SLURMD = Remedy(
    "Look why slurmd ended (`journalctl -u slurmd -e`, or the file SlurmdLogFile), mend that, and"
    " start it with `systemctl start slurmd`. `slurmd -D -v` by hand says the most."
)
ANSWER = Remedy(
    "Look in slurmd's log what it waits for, and with `ps -o stat,wchan:32,comm -C slurmd` whether"
    " it waits in the kernel. Jobs survive a restart of slurmd by systemctl."
)
CONTROLLER = Remedy(
    "Look on the controller's machine whether slurmctld runs (`systemctl status slurmctld`) and"
    " what its log says last: a full StateSaveLocation and a database that does not answer are"
    " common causes. Jobs that run go on meanwhile; the nodes need nothing."
)
BACKUP = Remedy(
    "Look on the machine that is named why its slurmctld does not answer, and start it again. The"
    " other one does the work meanwhile, and nothing is left if that one fails too. The primary"
    " takes over by itself once it runs."
)
SAME_CONF = Remedy(
    "Bring the same file to all nodes, and tell the daemons with `scontrol reconfigure` (new or"
    " removed nodes want a restart of slurmctld and all slurmds). With slurmd --conf-server the"
    " nodes fetch it from the controller and cannot differ.",
    "§2.2",
)
ASKER = Remedy(
    "Install Slurm's commands on this machine or on the nodes and let the login user run `scontrol"
    " show node`, or set `ask = never` for this check where the state is watched otherwise."
)
SAME_KEY = Remedy(
    "Slurm does not believe who asks. See that munged runs where scontrol was asked and on the"
    " controller (`munge -n | unmunge` on each, and `munge -n | ssh CONTROLLER unmunge` between"
    " them), that both have the same munge.key, and that their clocks agree."
)
SAME_RELEASE = Remedy(
    "Compare `scontrol --version` where it was asked with `slurmctld -V` on the controller:"
    " commands may be two releases older than slurmctld (three from 24.11 on), and none newer."
    " Bring the older one up to date; slurmctld goes before the nodes."
)
OWN_NAME = Remedy(
    "Let slurm.conf and the node agree: NodeHostname (NodeName, where it is not given) is what"
    " `hostname -s` prints on the node. Set the node's host name (`hostnamectl set-hostname`), or"
    " mend the line in slurm.conf on all nodes, and start slurmd.",
)
OWN_ADDRESS = Remedy(
    "Let NodeAddr in slurm.conf be an address of the node (`ip -br address` there), the same on"
    " all nodes, and restart slurmctld and all slurmds: addresses are read when they start. What"
    " has the old address now may be another machine.",
)
READABLE = Remedy("Let all users read slurm.conf: each of Slurm's commands needs it.")
