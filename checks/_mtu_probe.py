"""The probe of the check mtu."""

PROBE = r"""
# A host with many containers has hundreds of interfaces: only what the shell does by itself here.
# "NAME MTU STATE CARRIER TYPE INDEX LINK KIND UPPERS LOWERS", with - for what is not there
one_interface() {
    name=${1##*/} size='' state='' carrier='' type='' index='' link='' kind='' uppers='' lowers=''
    read -r size 2>/dev/null <"$1/mtu"
    read -r state 2>/dev/null <"$1/operstate"
    read -r carrier 2>/dev/null <"$1/carrier"
    read -r type 2>/dev/null <"$1/type"
    read -r index 2>/dev/null <"$1/ifindex"
    read -r link 2>/dev/null <"$1/iflink"
    if [ -d "$1/bonding" ]; then
        kind=bond
    elif [ -d "$1/bridge" ]; then
        kind=bridge
    elif [ -e "$1/device" ]; then
        kind=real
    elif [ -r "$1/uevent" ]; then
        while read -r entry; do
            case $entry in
            DEVTYPE=*) kind=${entry#*=} ;;
            esac
        done <"$1/uevent"
    fi
    for entry in "$1"/upper_* "$1"/lower_*; do
        [ -e "$entry" ] || continue
        case ${entry##*/} in
        upper_*) uppers="$uppers,${entry##*/upper_}" ;;
        *) lowers="$lowers,${entry##*/lower_}" ;;
        esac
    done
    if [ -z "$uppers" ] && [ -d "$1/master" ]; then # kernels before 3.13
        uppers=,$(cd -P "$1/master" && printf '%s' "${PWD##*/}")
    fi
    printf '%s %s %s %s %s %s %s %s %s %s\n' "$name" "${size:--}" "${state:--}" "${carrier:--}" \
        "${type:--}" "${index:--}" "${link:--}" "${kind:--}" "${uppers:--}" "${lowers:--}"
}
for place in "$ROOT"/sys/class/net/*; do
    [ -d "$place" ] && one_interface "$place"
done | lines interfaces

# interfaces of the default routes
default=''
if [ -r "$ROOT/proc/net/route" ]; then
    while read -r name target _ _ _ _ _ mask _; do
        [ "$target/$mask" = 00000000/00000000 ] && default="$default $name"
    done <"$ROOT/proc/net/route"
fi
if [ -r "$ROOT/proc/net/ipv6_route" ]; then
    while read -r target mask _ _ _ _ _ _ _ name; do
        case $target/$mask/$name in
        */lo) ;;
        00000000000000000000000000000000/00/*) default="$default $name" ;;
        esac
    done <"$ROOT/proc/net/ipv6_route"
fi
fact default "${default# }"

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
set -f
# shellcheck disable=SC2086 # the words are wanted
set -- $HOSTS
for peer in $PEERS; do
    target_of "$peer" "$1"
    shift
    fact "target@$peer" "$target"
done

# Up to five packets in a second, until one is answered; the rest of the limit is for the name.
# As root where the user may not ping and root can be had.
way=user
ask() {
    if [ "$way" = root ]; then
        as_root timeout -k 1 6 ping -n -c 1 -i 0.2 -w 1 "$@" 2>&1
    else
        within 6 ping -n -c 1 -i 0.2 -w 1 "$@" 2>&1
    fi
}
# what the first words of ping's errors are depends on the libraries; the rest is the kernel's
refused() {
    case $1 in
    *'bytes from'* | *sendmsg* | *sendto*) return 1 ;;
    *'ot permitted'* | *'ermission denied'* | *'are you root'* | *cap_net_raw*) return 0 ;;
    *) return 1 ;;
    esac
}
can=none
if have ping; then
    can=ready
    out=$(ask -M 'do' 127.0.0.1)
    if refused "$out"; then
        way=root
        out=$(ask -M 'do' 127.0.0.1)
        if [ "$?" = 126 ] || refused "$out"; then can='not permitted'; fi
    fi
    case $out in
    *'nvalid option'* | *'nrecognized option'* | *'sage: '*) can='without -M' ;;
    esac
fi
have ip || [ "$can" != ready ] || can='no ip'
fact ping "$can"
[ "$can" = ready ] || return

# what became of a packet, by all that ping said
reason() {
    case $1 in
    *'bytes from'*) echo arrives ;;
    *'ervice not known'* | *'nknown host'* | *'ad address'* | *'ame resolution'* | \
        *'oes not resolve'* | *'ddress associated'* | *'family for hostname'* | \
        *'nknown server error'*) echo no_name ;;
    *sendmsg*'ot permitted'* | *sendto*'ot permitted'*) echo filtered_here ;;
    *rohibited* | *'acket filtered'* | *'ort Unreachable'* | *'ort unreachable'*) echo filtered ;;
    *'essage too long'*) echo local ;;
    *'rag needed'* | *'acket too big'*) echo router ;;
    *'etwork is unreachable'* | *'et Unreachable'* | *'o route'*) echo no_route ;;
    *) echo silent ;;
    esac
}

# the MTU that is told in "mtu=1500", "mtu = 1500" or "mtu: 1500"
told_mtu() {
    case $1 in
    *mtu*) ;;
    *) return ;;
    esac
    told=${1##*mtu}
    told=${told#"${told%%[0-9]*}"}
    echo "${told%%[!0-9]*}"
}

# Packets of $1 bytes in all to $address that must stay whole; sets out and became.
send() {
    out=$(ask -M 'do' -s "$(($1 - headers))" "$address")
    became=$(reason "$out")
}

# which of the sizes arrive, all tried at once
arriving() {
    for bytes; do
        {
            send "$bytes"
            [ "$became" = arrives ] && echo "$bytes"
        } &
    done
    wait
}

# From $low, which arrives, and $high, which does not, on to the largest that does: the sizes that
# networks have first (1504 is 1500 and a VLAN's tag), then a few between at a time.
narrow() {
    turn=0
    while [ "$turn" -lt 4 ] && [ "$((high - low))" -gt 1 ]; do
        points=''
        if [ "$turn" = 0 ]; then
            for bytes in $limit 1280 1400 1450 1492 1500 1504 2044 4092 8950; do
                [ "$bytes" -gt "$low" ] && [ "$bytes" -lt "$high" ] && points="$points $bytes"
            done
        fi
        if [ -z "$points" ]; then
            points=$((low + 1))
            for part in 1 2 3 4 5; do
                bytes=$((low + (high - low) * part / 6))
                [ "$bytes" -gt "$((low + 1))" ] && points="$points $bytes"
            done
        fi
        # shellcheck disable=SC2086 # the words are wanted
        good=$(arriving $points)
        for bytes in $good; do
            [ "$bytes" -gt "$low" ] && low=$bytes
        done
        for bytes in $points; do
            [ "$bytes" -gt "$low" ] && [ "$bytes" -lt "$high" ] && high=$bytes
        done
        [ "$turn$low" = "0$limit" ] && high=$((low + 1)) # that no more than this passes was told
        turn=$((turn + 1))
    done
}

# is `mtu` wanted of the interface
wanted() {
    [ "$mtu" -gt 0 ] || return 1
    [ -n "$interfaces" ] || return 0
    for pattern in $interfaces; do
        # shellcheck disable=SC2254 # it is a pattern
        case $1 in
        $pattern) return 0 ;;
        esac
    done
    return 1
}

# The address is in the first line: "PING node02 (192.0.2.12) 56(84) …", "PING node02(node02
# (fd00::2)) 56 …"
address_of() {
    case $1 in
    *'PING '*\(*) ;;
    *) return ;;
    esac
    rest=${1#*PING }
    rest=${rest#*\(}
    rest=${rest%%\)*}
    printf '%s' "${rest##*\(}"
}

# Does the link address of the silent $address answer? A kernel that knew it from before asks it
# again after five seconds.
is_neighbour() {
    for turn in 1 2 3 4 5 6; do
        case $(within 3 ip neigh show "${address%%\%*}" dev "$dev" 2>/dev/null) in
        *REACHABLE*) return 0 ;;
        *DELAY* | *PROBE* | *STALE*) sleep 1 ;;
        *) return 1 ;;
        esac
    done
    return 1
}

# Tells of $peer, which is tried as $target.
try_peer() {
    out=$(ask ${family:+"$family"} "$target")
    [ "$?" = 124 ] && fact "small@$peer" no_name && return
    became=$(reason "$out")
    address=$(address_of "$out")
    dev='' via='' limit=''
    if [ -n "$address" ]; then
        # shellcheck disable=SC2046 # the words are wanted
        set -- $(within 3 ip -o route get "${address%%\%*}" 2>/dev/null)
        [ "${1:-}" = local ] && fact "small@$peer" self && return
        while [ "$#" -gt 1 ]; do
            case $1 in
            dev) dev=$2 ;;
            via) via=$2 ;;
            esac
            shift
        done
        case $address in
        *%*) dev=${address#*%} ;;
        esac
    fi
    if [ "$became" = silent ] && [ -n "$dev" ] && [ -z "$via" ] && is_neighbour; then
        became=filtered
    fi
    fact "small@$peer" "$became"
    [ "$became" = arrives ] || return
    own=''
    read -r own 2>/dev/null <"$ROOT/sys/class/net/$dev/mtu"
    fact "dev@$peer" "$dev"
    fact "mtu@$peer" "$own"
    full=${own:-0}
    wanted "$dev" && full=$mtu
    [ "$full" -gt 65535 ] && full=65535
    headers=28 low=84
    case $address in
    *:*) headers=48 low=104 ;;
    esac
    [ "$full" -gt "$low" ] || return
    fact "size@$peer" "$full"
    send "$full"
    fact "full@$peer" "$became"
    [ "$became" = arrives ] && return
    limit=$(told_mtu "$out")
    [ "$became" = local ] && limit=${limit:-$own}
    high=$full
    narrow
    fact "passes@$peer" "$low"
    fact "fails@$peer" "$high"
}

family=''
case $ip in
4 | 6) family=-$ip ;;
esac
began=$(date +%s)
count=0
# shellcheck disable=SC2086 # the words are wanted
set -- $HOSTS
for peer in $PEERS; do
    target_of "$peer" "$1"
    shift
    if [ "$count" = 32 ]; then
        wait
        count=0
        [ "$(($(date +%s) - began))" -ge 35 ] && count=full
    fi
    if [ "$count" = full ]; then
        fact "small@$peer" untried
        continue
    fi
    try_peer &
    count=$((count + 1))
done
wait
"""
