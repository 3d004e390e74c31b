"""TCP does not lose much: what is sent arrives.

A worn cable, a full switch port or a bond of unequal members lose packets without a word; TCP sends
them again and gets slower. So the kernel's own count is looked at twice within a second. A node
without work sends too little for that: its count since boot tells then, and how many segments it
rests on is always said. The kernel counts IPv4 and IPv6 together.

Not all that is sent again was lost. Attempts to connect to a silent host are taken out, for they
speak of that host, and so is what the other end says it had already (RFC 2883): a machine that is
busy answers late. On one such machine 10,306 of 10,583 segments had been sent again for nothing.

Source of the limit: at a loss of 1 % one TCP stream comes to 1.4 Gb/s at best, at 0.1 ms (Mathis
and others, 1997: 1.22 MSS / (RTT √loss)), and to less over more hops.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Le

from clustercheck.check import (
    Check,
    Code,
    Facts,
    Finding,
    Quantity,
    Remedy,
    ok,
    option,
    skip,
    unknown,
    warn,
)

from ._retrans_read import Look, parse_connections, parse_looks, worst

# Since boot there is more to go by, and more that is long past.
SINCE_BOOT = 10

PROBE = r"""
# sets the variables that are named after the counters of a line of the kernel's table
pick() {
    file=$ROOT/proc/net/$1 kind=$2 titles='' numbers=''
    shift 2
    [ -r "$file" ] || return
    while read -r first rest; do
        [ "$first" = "$kind:" ] || continue
        [ -n "$titles" ] && numbers=$rest && break
        titles=$rest
    done <"$file"
    set -f
    # shellcheck disable=SC2086 # the words are wanted
    set -- $numbers
    for title in $titles; do
        case $title in
        OutSegs) sent=${1:-} ;;
        RetransSegs) again=${1:-} ;;
        TCPSynRetrans) asking=${1:-0} ;;
        TCPDSACKRecv | TCPDSACKRecvSegs) needless=${1:-0} ;; # the better one comes second
        esac
        [ "$#" = 0 ] || shift
    done
}
look() {
    sent='' again='' asking=0 needless=0 uptime=''
    pick snmp Tcp
    pick netstat TcpExt
    [ -r "$ROOT/proc/uptime" ] && read -r uptime _ <"$ROOT/proc/uptime"
    looks="$looks${uptime:-?} ${sent:-?} ${again:-?} $asking $needless$nl"
}
# are more than so many of a thousand segments lost
many() { [ "$(($3 * 1000))" -gt "$(($2 * $1))" ]; }

looks='' nl='
'
look
case $sent.$again in
*[!0-9.]* | .* | *.)
    fact looks "${looks%"$nl"}"
    return
    ;;
esac
first_sent=$sent lost=$((again - asking - needless))
first_lost=$lost
connections=''
many 5 "$sent" "$lost" && connections=1
# a fifth of a second tells enough of a busy node that is well, and of one without work
sleep 0.2 2>/dev/null || sleep 1
look
passed=$((sent - first_sent)) lost=$((again - asking - needless - first_lost))
if [ "$seconds" -gt 1 ] || { [ "$passed" -ge 10 ] && [ "$passed" -lt "$segments" ]; } ||
    many 1 "$passed" "$lost"; then
    sleep "$seconds"
    look
fi
fact looks "${looks%"$nl"}"
many 5 "$((sent - first_sent))" "$((again - asking - needless - first_lost))" && connections=1
if [ -n "$connections" ] && have ss; then
    within 3 ss -tin 2>/dev/null | head -n 2000 | lines connections
fi
"""


@dataclass(frozen=True)
class Options:
    percent: Annotated[float, Gt(0), Le(100)] = option(
        1, "segments that may be lost, of those sent", unit="%"
    )
    segments: Annotated[int, Ge(1)] = option(
        10_000,
        f"how many must be sent between two looks to speak of them; {SINCE_BOOT} times as many"
        " since boot",
        unit="segments",
    )
    seconds: Annotated[int, Ge(1), Le(30)] = option(
        1, "how far two looks are apart at most; above 1, they always are", unit="s"
    )


FIND_LOSS = Remedy(
    "See whom it happens with: `ss -tin` on the node shows `retrans:` for each connection (less"
    " `dsack_dups:`, which had arrived), and `nstat`, run twice, what came between. With one peer,"
    " look at that one; on all nodes of a rack, at its switch (drops and pause frames of its"
    " ports); on this node alone, at its cable, switch port and bond (the checks link, bond and"
    " mtu). Many that send to one at a time overrun its port: then the switch needs flow control or"
    " ECN.",
    "§2.3",
)


def judge(facts: Facts, options: Options) -> Iterator[Finding]:
    looks = parse_looks(facts["looks"])
    if not looks:
        yield unknown("now", "the counters of TCP could not be read from /proc/net/snmp")
        return
    boot = looks[-1]
    now = boot.since(looks[0])
    peers = worst(parse_connections(facts.get("connections", "")))
    since_boot = f"{_share(boot)} since boot"
    should = f", should be {options.percent:g} % at most"
    if now.sent < 0 or now.uptime < 0:
        yield unknown("now", "the counters of TCP went back between two looks")
    elif now.sent >= options.segments:
        found = f"{_share(now)} were lost within {now.uptime:.1f} s"
        value = Quantity(now.percent, "%")
        if now.percent > options.percent:
            message = f"{found}{should} ({since_boot}){peers}"
            yield warn("now", message, FIND_LOSS, value=value)
        else:
            yield ok("now", f"{found} ({since_boot})", value=value)
    else:
        few = f"{now.sent} within {now.uptime:.1f} s"
        value = Quantity(boot.percent, "%")
        if boot.sent < options.segments * SINCE_BOOT:
            message = f"too few segments to tell: {few}, {boot.sent} since boot"
            yield skip("now", message)
        elif boot.percent > options.percent:
            message = f"{since_boot} were lost{should}; too few to tell now ({few}){peers}"
            yield warn("boot", message, FIND_LOSS, value=value)
        else:
            message = f"{since_boot} were lost; too few segments to tell now ({few})"
            yield ok("boot", message, value=value)


def _share(look: Look) -> str:
    return f"{look.percent:.2g} % of {look.sent} segments"


CHECK = Check(
    title="TCP segments that are lost",
    stale="time",
    options=Options(),
    judge=judge,
    codes={
        "now": Code("The share of segments lost between two looks.", (FIND_LOSS,)),
        "boot": Code(
            "The share since boot, where too little is sent now. The cause may be past.",
            (FIND_LOSS,),
        ),
    },
    probe=PROBE,
    probe_options=("segments", "seconds"),
    limit=40,
    after=("link", "bond", "mtu"),
)
