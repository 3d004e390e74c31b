"""Every exit code, in one place."""

from clustercheck.check import Status

# The monitoring plug-ins' numbers, for the worst status of a run.
OF_STATUS = {
    Status.PASS: 0,
    Status.SKIP: 0,
    Status.WARN: 1,
    Status.FAIL: 2,
    Status.UNKNOWN: 3,
}

# Nothing was checked: never success.
NOTHING_CHECKED = 3

# Of `gate`. EX_TEMPFAIL of sysexits(3) says that it is worth another try; Slurm's RequeueExit can
# name it.
OF_ANSWER = {"go": 0, "no-go": 1, "undecided": 75}

# sysexits(3): EX_USAGE and EX_CONFIG.
USAGE = 64
CONFIG = 78

# As a shell tells of SIGINT and SIGPIPE.
INTERRUPTED = 130
BROKEN_PIPE = 141

# EX_UNAVAILABLE: a mail could not be sent, and is kept.
NOT_SENT = 69

# EX_TEMPFAIL: another sweep goes on.
TEMPORARY = 75
