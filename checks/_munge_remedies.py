"""What to do about Munge."""

from clustercheck.check import Remedy

START = Remedy(
    "Look why munged does not run (`journalctl -u munge -e`, /var/log/munge/munged.log): mostly a"
    " key with the wrong owner or mode. Then start it with `systemctl start munge`. Slurm on the"
    " node goes on by itself."
)
SOCKET_MODE = Remedy(
    "All users must be able to reach munged's socket: its directory, /run/munge, wants mode 0755,"
    " and the socket itself 0777."
)
STUCK = Remedy(
    "Look what munged waits for (`ps -o stat,wchan:32,comm -C munged`): name services that do not"
    " answer are common, for it looks up all groups. `systemctl restart munge` does no harm to"
    " jobs that run."
)
CLOCKS = Remedy(
    "Munge refuses what was made too long ago or in the future. Look at the clocks of both nodes"
    " (check ntp), mend them, and leave the time to live as it is.",
    "§4.1.1",
)
DECODE = Remedy(
    "A credential that munged itself has made must be readable at once: look in"
    " /var/log/munge/munged.log, and whether a second munged runs with another key."
)
KEY_MODE = Remedy(
    "Whoever has the key can act as any user, root included. Give the file mode 0400 and munged's"
    " user as owner, make a new key with `mungekey`, and bring it to all nodes in a time without"
    " jobs: the old one may be known.",
    disturbs=True,
)
KEY_OWNER = Remedy(
    "Give the file the user that munged runs as (munge, as a rule) and mode 0400: otherwise munged"
    " refuses it when it is started next."
)
KEY_MISSING = Remedy(
    "Bring the file back from another node, owned by munged's user, mode 0400: munged has it in"
    " memory and will not start again without."
)
KEY_SHORT = Remedy(
    "Make a new key with `mungekey` (1024 bits) and bring it to all nodes in a time without jobs:"
    " munged takes none below 32 bytes.",
    disturbs=True,
)
KEY_NEWER = Remedy(
    "If the key was changed, `systemctl restart munge` on all nodes in one go: munged reads it when"
    " it starts, and nodes with the old and the new key refuse each other."
)
SAME_KEY = Remedy(
    "Bring the key of the other nodes to this one (owner munge, mode 0400), and"
    " `systemctl restart munge` there. Say `same_key = no` for nodes that belong to no cluster."
)
SAME_IDS = Remedy(
    "Give the user and group munge the same numbers on all nodes, with munged stopped meanwhile,"
    " and then change the owner of its files."
)
RESTART = Remedy(
    "The key's file is that of the other nodes, and munged reads it only when it starts:"
    " `systemctl restart munge` on this node, and see that no second munged runs with another key."
    " Jobs that run are not harmed."
)
