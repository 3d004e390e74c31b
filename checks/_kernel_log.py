"""How a probe reads the kernel's log of this boot, as the login user or as root."""

# For the beginning of a probe that has a function `pick`, which reads the log and prints what is
# to be known of it, and $log_hours. $log_from is then "dmesg", "journal", "refused" (root is
# needed, which the frame says) or "none"; $log is what `pick` printed, and after it three lines:
# how many lines there were, the log's first time, and the exit status of the reader.
KERNEL_LOG = r"""
log_of() {
    log=$({
        "$@" 2>/dev/null
        printf '\n%s %s\n' "$cc_mark" "$?"
    } | pick)
}
read_log() {
    log='' log_from=none
    have dmesg && log_of within 5 dmesg && log_from=dmesg
    case $log in
    *"ended 0") return ;;
    esac
    if have journalctl; then
        for file in "$ROOT"/var/log/journal/*/system.journal \
            "$ROOT"/run/log/journal/*/system.journal; do
            [ -r "$file" ] || continue
            log_of within 8 journalctl -k -b -q --no-pager -o short-monotonic \
                --since="-${log_hours}h"
            log_from=journal
            case $log in
            *"ended 0") return ;;
            esac
            break
        done
    fi
    if have dmesg; then
        log_of as_root timeout -k 1 5 dmesg
        log_from=dmesg
        [ "$cc_root" = no ] && log_from=refused
    fi
}
"""

# What every `pick` has in its awk, around what it is there for.
PICK_HEAD = r"""
        $1 == mark { ended = $2; next }
        NF { lines++ }
        first == "" && match($0, /\[ *[0-9]+\.[0-9]+\]/) {
            first = substr($0, RSTART + 1, RLENGTH - 2)
            sub(/^ +/, "", first)
        }
"""
PICK_TAIL = r"""
            print "lines", lines + 0
            print "first", first
            print "ended", ended
"""
