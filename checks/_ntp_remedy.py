"""What to do about a clock that is off, or a daemon that does not keep it."""

from clustercheck.check import Remedy

START = Remedy(
    "Install chrony, name the site's time servers in chrony.conf, and enable and start chronyd. "
    "Start it before jobs run: it may step the clock once at its start.",
    "§4.1.1",
    disturbs=True,
)
SOURCES = Remedy(
    "See what the daemon thinks of its servers (chronyc -n sources -v, ntpq -pn, timedatectl "
    "timesync-status). Name servers that answer from this node, at least three, and let UDP port "
    "123 through. A daemon that was just started needs a minute.",
    "§4.1.1",
)
DISAGREE = Remedy(
    "Find out which server is wrong (ask each from several nodes), and mend or remove that one. "
    "With three servers or more the daemon can outvote one by itself; with two it cannot.",
    "§4.1.1",
)
REAL_SOURCE = Remedy(
    "Let the daemon follow a real time server; its own clock is no reference. Where this node is "
    "meant to serve its own clock to a cluster without Internet, set allow_own_clock for it.",
    "§4.1.1",
)
FIND_OUT = Remedy(
    "First find out why: no source that answers, a wrong server, or a correction under way "
    "(chronyc -n tracking and sources -v; ntpq -pn). Then let it slew; to step at once "
    "(chronyc makestep) drain the node first, for a step disturbs running jobs. A mere restart "
    "of the daemon mends neither.",
    "§4.1.1",
    disturbs=True,
)
WRONG_SOURCE = Remedy(
    "Do not trust this daemon's word: compare its server's time with the reference, and check "
    "that it may set the clock at all (not in a container, not started with -x). Mend the server "
    "or name another one.",
    "§4.1.1",
)
WHICH_IS_WRONG = Remedy(
    "Name a time server with the option reference, to tell which of the two clocks is wrong. If it "
    "is the node's, its daemon follows a wrong server or may not set the clock (in a container, or "
    "started with -x).",
    "§4.1.1",
)
ONE_DAEMON = Remedy(
    "Keep one daemon and disable the others (systemctl disable --now systemd-timesyncd, say); "
    "two of them pull the clock to and fro.",
    "§4.1.1",
)
LOOK_ON_HOST = Remedy(
    "Check the node that the container runs on: its kernel keeps the clock for both. If the "
    "container is to keep it, start a time daemon there.",
    "§4.1.1",
)
ASK_AS_ROOT = Remedy(
    "Ask with become = sudo, or let the daemon answer on the loopback address (chrony: no "
    "cmdport 0; ntp.conf: restrict 127.0.0.1 and ::1). If it does not answer root either, see "
    "its log.",
    "§4.1.1",
)
INSTALL_TOOL = Remedy(
    "Install the tool that belongs to the daemon: chronyc, ntpq or timedatectl. busybox's ntpd has "
    "none; chronyd in its place could be asked.",
    "§4.1.1",
)
SET_REFERENCE = Remedy(
    "Name a time server that this machine can reach with the option reference.", "§4.1.1"
)
NEARER = Remedy(
    "Nothing is wrong with the node: measure from a machine nearer to it, or when this machine "
    "and the network are less busy, or set wider limits.",
)
