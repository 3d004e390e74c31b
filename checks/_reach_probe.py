"""The probe of the check reach."""

PROBE = r"""
count=0
for peer in $PEERS; do count=$((count + 1)); done
fact peers "$count"
[ "$count" = 0 ] && return

# the inventory's address or a name made of the node's, by the option `names`
target_of() {
    case $names in
    *'{node}'*) target=${names%%'{node}'*}$1${names#*'{node}'} ;;
    *) target=${names%%'{host}'*}$2${names#*'{host}'} ;;
    esac
}
# calls $1 for each peer with peer, target and port
each_peer() {
    todo=$1
    # shellcheck disable=SC2086 # the words are wanted
    set -- $HOSTS
    # shellcheck disable=SC2153 # it is no misspelling
    others=$PORTS
    for peer in $PEERS; do
        target_of "$peer" "$1"
        shift
        at=${others%%"$cc_nl"*}
        others=${others#*"$cc_nl"}
        [ "$port" -gt 0 ] && at=$port
        [ "$at" = 0 ] && at=22
        "$todo" "$peer" "$target" "$at"
    done
}
set -f

told_of() {
    fact "target@$1" "$2"
    fact "port@$1" "$3"
}
each_peer told_of

# What comes of a connection to $1, port $2, that is closed at once. With a greeting ($3), sshd
# takes it for a client that has gone, and not for an attack.
try() {
    try_for 2 "$@"
    # a packet that was lost, or a busy node, is no silence
    [ "$became" != silent ] || try_for 3 "$@"
}
try_for() {
    # shellcheck disable=SC2016 # bash is to expand it
    said=$(within "$1" bash -c 'exec 3<>"/dev/tcp/$0/$1" || exit 9
        [ -z "$2" ] || { printf "%s\r\n" "$2" >&3; read -r -t 1 <&3; }
        exit 0' "$2" "$3" "${4:-}" 2>&1)
    case $?/$said in
    0/*) became=open ;;
    *refused*) became=refused ;;
    *'o route'* | *unreachable* | *'is down'*) became=no_route ;;
    *'not known'* | *'ame resolution'* | *'ddress associated'* | *'family for host'* | \
        *'non-recoverable'*) became=no_name ;;
    *'ot permitted'* | *'ermission denied'*) became=own ;;
    *) became=silent ;;
    esac
}

try_slurmd() { { try "$2" "$slurm_port" && fact "slurmd@$1" "$became"; } & }
is_slurmd=''
if [ "$slurmd" = 1 ]; then
    hex=$(printf '%04X' "$slurm_port")
    is_slurmd=no
    grep -qs ":$hex [0-9A-F]*:0000 0A " "$ROOT/proc/net/tcp" "$ROOT/proc/net/tcp6" && is_slurmd=yes
    [ "$is_slurmd" = no ] || have bash || is_slurmd=untried
    [ "$is_slurmd" = yes ] && each_peer try_slurmd
fi
fact slurmd "$is_slurmd"

tool=none
have ssh-keyscan && tool=keyscan
have bash && tool=bash
fact tool "$tool"
try_ssh() { { try "$2" "$3" SSH-2.0-clustercheck && fact "ssh@$1" "$became"; } & }
[ "$ssh" = no ] || [ "$tool" != bash ] || each_peer try_ssh

# Are host keys wanted? To get one costs both sides some 60 ms of a processor.
system=$ROOT/etc/ssh/ssh_known_hosts
file=no keys=no
[ -r "$system" ] && file=yes
fact known_hosts "$file"
case $known_hosts/$file/$ssh in
no/* | auto/no/* | */no) ;;
*) have ssh-keygen && keys=yes ;;
esac

# One process for all peers that have the same port. One kind of key: each kind is a connection of
# its own, and sshd refuses more than a few at a time.
add() {
    case " $numbers " in
    *" $3 "*) ;;
    *) numbers="$numbers $3" ;;
    esac
}
same_port() { if [ "$3" = "$now" ]; then targets="$targets $2"; fi; }
scan=''
greet() {
    numbers=''
    each_peer add
    for now in $numbers; do
        targets=''
        each_peer same_port
        # shellcheck disable=SC2086 # the words are wanted
        scan="$scan$cc_nl$(within 3 ssh-keyscan -T 2 -p "$now" -t ed25519 -- $targets 2>&1)"
    done
}
# The greeting's line has a # and, of newer programs, the port; the key's only if it is not 22.
key_of() {
    key=''
    case $scan in
    *"${cc_nl}[$2]:$3 ssh-"*) key=${scan#*"${cc_nl}[$2]:$3 "} ;;
    *"$cc_nl$2 ssh-"*) [ "$3" = 22 ] && key=${scan#*"$cc_nl$2 "} ;;
    esac
    key=${key%%"$cc_nl"*}
    [ -n "$key" ] && fact "key@$1" "$key"
    [ "$tool" = keyscan ] || return
    case $key/$scan in
    ssh-* | *"$cc_nl# $2:$3 SSH-"* | *"$cc_nl# $2 SSH-"*) fact "ssh@$1" open ;;
    *) fact "ssh@$1" silent ;;
    esac
}
case $tool/$keys/$ssh in
*/no) ;;
keyscan/* | */yes/*)
    have ssh-keyscan && greet
    each_peer key_of
    ;;
esac
wait

# the host keys of peers that are known here; a home is looked into only where it counts
look() {
    within 2 ssh-keygen -F "$2" -f "$1" 2>/dev/null
    [ "$3" = "$2" ] || within 2 ssh-keygen -F "$3" -f "$1" 2>/dev/null
}
known_of() {
    label=$2 name=$1
    [ "$3" = 22 ] || label="[$2]:$3" name="[$1]:$3"
    found=''
    [ "$file" = yes ] && found=$(look "$system" "$label" "$name")
    fact "system@$1" "$found"
    [ -z "$found" ] || [ "$known_hosts" = yes ] || return
    fact "user@$1" "$(look "$ROOT${HOME:-}/.ssh/known_hosts" "$label" "$name")"
}
[ "$keys" = yes ] && each_peer known_of
"""
