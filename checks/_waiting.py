"""Functions of sh for probes that wait for several processes, of which some may never end."""

BY_ROOT = r"""
# CMD for $1 seconds at most, as root.
by_root() {
    if have timeout; then as_root timeout -k 1 "$@"; else shift && as_root "$@"; fi
}
"""

SETTLE = r"""
# Waits for the processes $waiting ("NAME=PID …"), $1 tenths of a second at most: one that waits in
# the kernel cannot be ended, and is left behind. $waiting is then what was left.
settle() {
    turns=0
    while :; do
        jobs >/dev/null 2>&1 # takes note of those that have ended
        left=
        for entry in $waiting; do
            kill -0 "${entry##*=}" 2>/dev/null && left="$left $entry"
        done
        waiting=$left
        if [ -z "$left" ] || [ "$turns" -ge "$1" ]; then
            return
        fi
        turns=$((turns + 1))
        sleep 0.1 2>/dev/null || { sleep 1 && turns=$((turns + 10)); }
    done
}
"""

WAITING = BY_ROOT + SETTLE
