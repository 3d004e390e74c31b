"""Why a node gave no answer: the findings that belong to no check, each with its remedy.

They are shown as those of a check called `access`, so that an unreachable node is one finding.
"""

from clustercheck.check import Code, Finding, Remedy, unknown

NAME = "access"
LONGEST = 1000  # characters of a message


def _code(meaning: str, remedy: str, see: str = "", *, disturbs: bool = False) -> Code:
    return Code(meaning, (Remedy(remedy, see, disturbs),))


CODES: dict[str, Code] = {
    # The way to the port.
    "no_name": _code(
        "The node's name has no address, or the name service did not answer in time.",
        "Look at `getent hosts NAME` on this machine; give the node's address as host= in the "
        "inventory, or HostName in ~/.ssh/config.",
    ),
    "refused": _code(
        "The node answers, and nothing listens on its SSH port.",
        "Look on the node's console whether sshd runs (`systemctl status sshd`, on Debian `ssh`) "
        "and on which port; give another port as port= in the inventory.",
    ),
    "no_route": _code(
        "The network or a firewall says that the node cannot be reached.",
        "Look whether the node has power and a link, and at `ip route get ADDRESS` on this "
        "machine; a firewall that rejects looks the same.",
    ),
    "timeout": _code(
        "Nothing came back from the node's SSH port in time, not even a refusal.",
        "Look at the node's power and console and whether `ping` gets an answer; a firewall that "
        "drops packets looks the same. --connect-timeout sets the time.",
    ),
    # The server before anybody has logged in.
    "no_banner": _code(
        "The port is open and no SSH server greets there.",
        "Look on the node's console: a machine out of memory or with a dead disk still accepts "
        "connections. Restarting sshd helps when only sshd hangs. Check the port as well.",
    ),
    "max_startups": _code(
        "The server closed each connection before its greeting, for as long as it was tried.",
        "Too many logins at once (MaxStartups in sshd_config), or the server keeps this address "
        "out (PerSourcePenalties, fail2ban, hosts.deny): look at sshd's log on the node. Ask "
        "fewer nodes at once (--parallel) where they share a server.",
    ),
    "handshake": _code(
        "The server greeted, and the key exchange failed or hung.",
        "When it hangs, a large packet was lost: look for a switch port or interface with a "
        "smaller MTU on the path with `ping -M do -s 8972 NODE` (1472 for MTU 1500). When it "
        "fails, sshd's log on the node says why; no common algorithm means that one side is "
        "too old.",
        "§5.3",
    ),
    "host_key_unknown": _code(
        "The node showed a host key that no known_hosts file has.",
        "Compare the fingerprint with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the "
        "node's console. Then add it with `ssh-keyscan -p PORT HOST >>~/.ssh/known_hosts`, by "
        "logging in once with ssh, or for all new nodes with --host-keys accept-new.",
    ),
    "host_key_changed": _code(
        "The node showed another host key than known_hosts has for it.",
        "Find out why before anything else: a node installed anew has a new key, and so has "
        "somebody in between. When the new key is right, take the old one out with "
        "`ssh-keygen -R HOST` (`-R '[HOST]:PORT'` for another port than 22) and add the new one.",
    ),
    "host_key_revoked": _code(
        "The node showed a host key that known_hosts marks as @revoked.",
        "Give the node a new host key (`rm /etc/ssh/ssh_host_*; ssh-keygen -A` on its console, "
        "then restart sshd): the old one must not be used again.",
    ),
    # Logging in.
    "login_refused": _code(
        "The node accepted none of the keys and passwords.",
        "Look whether the user is right and whether the public key is in ~/.ssh/authorized_keys "
        "on the node, which nobody else may be able to write; sshd's log there says what it "
        "disliked. `ssh -v NODE` shows the same attempts.",
    ),
    "account_closed": _code(
        "The node does not let this user in now, whatever the key.",
        "The words are those of the node's PAM modules. A node that boots or is shut down lets in "
        "root alone (/run/nologin); pam_slurm_adopt lets users in where they have a job; an "
        "account may have expired (`chage -l USER`). Use a user whom the node lets in at all "
        "times (user= in the inventory).",
    ),
    "key_passphrase": _code(
        "The private key is locked, and there was no right passphrase for it.",
        "Load it into an agent with `ssh-add FILE`, or let the passphrase be asked for with "
        "--ask-passphrase (or set CLUSTERCHECK_PASSPHRASE).",
    ),
    "key_unreadable": _code(
        "The private key's file is missing, unreadable or of a form that is not known.",
        "Check the path in the inventory (key=) or ~/.ssh/config (IdentityFile) and the file's "
        "rights; `ssh-keygen -p -f FILE` writes an old form anew.",
    ),
    "auth_timeout": _code(
        "The connection stood, and the login did not come to an end in time.",
        "Look on the node's console at what logins wait for: a home directory on an NFS server "
        "that does not answer, LDAP or SSSD, DNS (UseDNS in sshd_config). An agent that waits "
        "for a touch or a confirmation looks the same.",
    ),
    # The way there.
    "ssh_settings": _code(
        "ssh on this machine does not accept its own settings.",
        "Correct the file and line that it names (`ssh -G NODE` reads the same); a word that only "
        "a newer ssh knows can stand below `IgnoreUnknown`. No node has been asked.",
    ),
    "jump": _code(
        "The jump host on the way to the node cannot be used.",
        "Try `ssh JUMPHOST`: what stops it there stops all nodes behind it. It must allow "
        "AllowTcpForwarding.",
    ),
    "proxy_command": _code(
        "The ProxyCommand of ~/.ssh/config failed.",
        "Run it by hand with %h and %p put in; it must connect its input and output with the "
        "node's SSH port.",
    ),
    # The script.
    "channel_refused": _code(
        "The login succeeded, and the server refused to run a command.",
        "Look at MaxSessions and ForceCommand in sshd_config and at command= in "
        "authorized_keys on the node, and at sshd's log there.",
    ),
    "nologin": _code(
        "The user's login shell ended without running the script.",
        "Use a user with a real login shell (user= in the inventory), or give this one a shell "
        "(`getent passwd USER` on the node, last field).",
    ),
    "no_sh": _code(
        "There is no sh on the node that could run the script.",
        "Look at `command -v sh` and at PATH in a login on the node, which a start-up file of the "
        "shell may empty, and at that file's rights; a POSIX sh is all that is needed.",
    ),
    "cut": _code(
        "The connection broke while the script ran, or nothing more was heard of it for 20 s.",
        "Look on the node's console: a crash, a reboot, a kill of sshd by the kernel for lack of "
        "memory, or a firewall that forgets connections.",
    ),
    "no_start": _code(
        "The login succeeded, and the script did not begin within the node's time limit.",
        "Look on the node at what logins wait for: a home on a file server that does not answer, a "
        "slow start-up file of the shell. If small commands by ssh work and long ones hang, large "
        "packets are lost on the way: look for a switch port or interface with a smaller MTU with "
        "`ping -M do -s 8972 NODE` (1472 for MTU 1500).",
        "§5.3",
    ),
    "limit": _code(
        "The node was not done within its time limit.",
        "Look on the node at what hangs (`ps axo pid,stat,wchan:30,args | grep ' D'`); where it "
        "is only slow, give it more time with --timeout.",
    ),
    "no_process": _code(
        "The node could not start another process for the login user.",
        "Look at the user's limits on the node (`ulimit -u`, /etc/security/limits.conf, TasksMax "
        "of user-UID.slice), at what he runs there (`ps -u USER`), and whether memory is left.",
    ),
    "no_directory": _code(
        "The script found no folder on the node with room for its own few files, which it removes "
        "again.",
        "Look why none of /dev/shm, /run/user, /tmp, /var/tmp and the home can be written to: "
        "full, mounted read-only after an error, or of wrong rights.",
    ),
    "flood": _code(
        "The node sent more output than is kept of one node, and was cut off.",
        "Find what writes so much: a .bashrc in an endless loop, or a check of one's own "
        "(run it alone with -c NAME).",
    ),
    "other_node": _code(
        "The machine that answered calls itself by the name of another node of the run.",
        "Look which machine it is: at host= in the inventory, HostName in ~/.ssh/config and "
        "`getent hosts NAME` on this machine, where an address may lead to the wrong one. Where it "
        "is the right machine, its own name is wrong: `hostnamectl`.",
    ),
    "garbled": _code(
        "The answer ended before the script did, or cannot be understood.",
        "Run it once more; where it happens again, `clustercheck script | ssh NODE exec sh -s` "
        "shows what comes back.",
    ),
    "root": _code(
        "Some probes need root, which the login user does not have and could not get.",
        "Set become = sudo and allow `sudo -n` on the node, or log in as root; the other checks "
        "are not affected.",
    ),
    "as_user": _code(
        "Some probes see more as root; what was not looked at is named.",
        "Set become = sudo and allow `sudo -n` on the node, or log in as root, to see all.",
    ),
    # By steps of Slurm.
    "no_slurm": _code(
        "Slurm's controller did not answer, or its commands are not here.",
        "Look at `scontrol ping` on this machine, and whether slurmctld runs and is not swamped "
        "(`sdiag`); ask over SSH until then.",
    ),
    "slurm_unknown": _code(
        "Slurm has no node of this name.",
        "Look at `sinfo -N` for the name that Slurm has for it; a node that is not in Slurm can be "
        "asked over SSH.",
    ),
    "slurm_not_ours": _code(
        "The node does not belong to the job in which the question is asked.",
        "Ask for the job's own nodes (without -w and -i it is all of them), or from outside of a "
        "job.",
    ),
    "slurm_out": _code(
        "Slurm gives the node no work now: it is down, drained or off.",
        "Look at its reason in `scontrol show node`; over SSH it can be asked all the same.",
    ),
    "slurm_busy": _code(
        "Slurm could not allocate the node at once: a job has it, or the limits of your account "
        "or partition stand against it.",
        "Ask again when it is idle, over SSH, or in a reservation. SALLOC_PARTITION, "
        "SALLOC_ACCOUNT, SALLOC_QOS and SALLOC_RESERVATION are heeded.",
    ),
    "slurm_launch": _code(
        "Slurm could not start the script on the node.",
        "Look whether slurmd runs there and answers (`scontrol show node`, `systemctl status "
        "slurmd` on the node's console), and at its log.",
    ),
    "crashed": _code(
        "A fault in clustercheck itself kept it from asking the node.",
        "Report it with the traceback on standard error. The other nodes are not affected.",
    ),
    "not_reached": _code(
        "The run ended before it was the node's turn.",
        "Give the run more time (--max-time), or ask more nodes at once (--parallel).",
    ),
}


def finding(code: str, message: str, *, peer: str = "") -> Finding:
    """The finding for an Unreachable's code and message: it is UNKNOWN, never a pass or a fail.

    Words of the other side may be in the message, and be many: it is cut.
    """
    if len(message) > LONGEST:
        message = f"{message[:LONGEST]}…"
    return unknown(code, message, CODES[code].remedies[0], peer=peer)
