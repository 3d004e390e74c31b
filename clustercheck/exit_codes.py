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

# sysexits(3): EX_USAGE and EX_CONFIG.
USAGE = 64
CONFIG = 78

# As a shell tells of SIGINT and SIGPIPE.
INTERRUPTED = 130
BROKEN_PIPE = 141

# EX_UNAVAILABLE: a mail could not be sent, and is kept.
NOT_SENT = 69
