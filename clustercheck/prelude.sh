# shellcheck shell=sh
# What a probe may use. It stands before the probes; $1 is the check's name, $2 the way to root
# ("direct", "sudo" or "no"). Values may be any text; a key has no blanks.
#
#   fact KEY VALUE        report one fact
#   CMD | lines KEY       report what CMD prints, many lines, as one fact
#   within SECONDS CMD…   run CMD for so long at most; 124 when it was ended
#   as_root CMD…          run CMD as root; 126 when that cannot be (said once a node)
#   have CMD              is there such a command
#   $ROOT                 stands before each path that is read: empty on a node
#   $PEERS                names of other nodes, one a line, for checks that ask for them
#   $HOSTS                what the inventory reaches them by, in the same order
#   $PORTS                and the ports, 0 where it says none
#   $FOLLOW               the text that the check's `follow` has for this node
#
# Standard output goes nowhere: only facts are heard. Files are bounded (ulimit -f), so a command
# that floods is ended by the kernel. No here-documents in a probe: some shells need /tmp for them.
exec 3>&1 >/dev/null </dev/null
# shellcheck disable=SC3045 # dash, bash and busybox all know -S
ulimit -S -f 1024
cc_name=$1 cc_root=$2 cc_timeout='' cc_asked=''
cc_nl='
'

# A fact could not be written: the probe must not come to its end without it. `lines` is in a
# subshell, where an exit would end no more than that.
lost() { kill -KILL $$; }

fact() {
    case $2 in
    *"$cc_nl"*) printf '%s\n' "$2" | lines "$1" ;;
    *) printf '%s %s = %s %s\n' "$cc_mark" "$cc_name" "$1" "$2" >&3 || lost ;;
    esac
}

lines() {
    { printf '%s\n' "$1" && cat; } |
        sed -e "1s/^/$cc_mark $cc_name : /" -e "1!s/^/$cc_mark $cc_name + /" >&3 || lost
    printf '\n' >&3 # the last line may have had no end; an empty line counts for nothing
}

have() { command -v "$1" >/dev/null 2>&1; }

# timeout(1) wants to be told what to do by its own words: old busybox has "-t SECONDS" only.
within() {
    if [ -z "$cc_timeout" ]; then
        cc_timeout=none
        have timeout && timeout -k 1 2 true 2>/dev/null && cc_timeout=timeout
    fi
    if [ "$cc_timeout" = timeout ]; then
        timeout -k 1 "$@"
    else
        shift
        "$@"
    fi
}

as_root() {
    case $cc_root in
    direct) "$@" ;;
    sudo) sudo -n -- "$@" ;;
    *)
        [ -n "$cc_asked" ] || printf '%s %s ! root\n' "$cc_mark" "$cc_name" >&3
        cc_asked=1
        return 126
        ;;
    esac
}
