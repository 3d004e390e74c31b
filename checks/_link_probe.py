"""The probe of the check link."""

PROBE = r"""
# A host with many containers has hundreds of interfaces: only what the shell does by itself here.
# "NAME word=value …": what the kernel does not tell is left out.
number() { # the word of the line, the file: its first number, where it has one
    value=''
    read -r value 2>/dev/null <"$2"
    [ -n "$value" ] && line="$line $1=$value"
}

counters() {
    for counter in rx_bytes rx_packets tx_packets rx_errors rx_crc_errors rx_frame_errors \
        rx_length_errors rx_over_errors rx_fifo_errors rx_missed_errors tx_errors; do
        number "$2$counter" "$1/statistics/$counter"
    done
}

# interfaces that packets of the node itself leave by: those of a route or of an IPv6 address
routed=' '
if [ -r "$ROOT/proc/net/route" ]; then
    while read -r name target _ _ _ _ _ mask _; do
        case $target/$mask in
        Destination/*) ;;
        00000000/00000000) routed="$routed$name default:$name " ;;
        *) routed="$routed$name " ;;
        esac
    done <"$ROOT/proc/net/route"
fi
if [ -r "$ROOT/proc/net/ipv6_route" ]; then
    while read -r target mask _ _ _ _ _ _ _ name; do
        case $target/$mask/$name in
        */lo) ;;
        00000000000000000000000000000000/00/*) routed="$routed$name default:$name " ;;
        esac
    done <"$ROOT/proc/net/ipv6_route"
fi
if [ -r "$ROOT/proc/net/if_inet6" ]; then
    while read -r _ _ _ scope _ name; do
        [ "$scope" = 00 ] && routed="$routed$name "
    done <"$ROOT/proc/net/if_inet6"
fi

# a VLAN's parent carries what the VLAN does
for place in "$ROOT"/sys/class/net/*/lower_*; do
    [ -e "$place" ] || continue
    upper=${place%/lower_*}
    [ ! -d "$upper/bonding" ] && [ ! -d "$upper/bridge" ] || continue
    lower=${place##*/lower_} upper=${upper##*/}
    case $routed in
    *" default:$upper "*) routed="$routed$lower default:$lower " ;;
    *" $upper "*) routed="$routed$lower " ;;
    esac
done

one_interface() {
    name=${1##*/} line=$name type='' flags='' carrier=''
    if [ -d "$1/bonding" ]; then
        kind=bond
    elif [ ! -e "$1/device" ]; then
        kind=virtual
    elif [ -e "$1/device/physfn" ]; then
        kind=function
    elif [ -d "$1/wireless" ] || [ -d "$1/phy80211" ]; then
        kind=wireless
    elif [ -e "$1/device/bInterfaceClass" ]; then
        kind=usb
    else
        kind=real
    fi
    read -r type 2>/dev/null <"$1/type"
    read -r carrier 2>/dev/null <"$1/carrier"
    line="$line kind=$kind type=${type:--} carrier=${carrier:--}"
    number speed "$1/speed"
    number duplex "$1/duplex"
    case $routed in
    *" default:$name "*) line="$line route=default" ;;
    *" $name "*) line="$line route=yes" ;;
    esac
    if [ "$kind" != virtual ]; then
        read -r flags 2>/dev/null <"$1/flags"
        case $flags in
        0x*[13579bdf]) line="$line set=up" ;;
        0x*) line="$line set=down" ;;
        esac
        number vendor "$1/device/vendor"
        number model "$1/device/device"
        number downs "$1/carrier_down_count"
        [ -z "$value" ] && number changes "$1/carrier_changes"
        bond=''
        for place in "$1"/upper_*; do
            [ -d "$place/bonding" ] && bond=${place##*/upper_}
        done
        [ -z "$bond" ] && [ -d "$1/master/bonding" ] && bond=master # kernels before 3.13
        [ -n "$bond" ] && line="$line bond=$bond"
        counters "$1" ''
    fi
    printf '%s\n' "$line"
}
seen=$(
    for place in "$ROOT"/sys/class/net/*; do
        [ -d "$place" ] && one_interface "$place"
    done
)
uptime=''
[ -r "$ROOT/proc/uptime" ] && read -r uptime _ <"$ROOT/proc/uptime"

# a hundred errors or more: do they still grow?
again=''
waited=''
set -f
IFS='
'
for line in $seen; do
    case $line in
    *' kind=virtual '* | *' carrier=0'* | *' carrier=-'*) continue ;;
    *errors=[0-9][0-9][0-9]*) ;;
    *) continue ;;
    esac
    name=${line%% *}
    [ -n "$waited" ] || sleep 1
    waited=1
    line=$name
    counters "$ROOT/sys/class/net/$name" ''
    again="$again$line$IFS"
done

# What both ends of a cable offer each other is not in /sys, and with some drivers the speed
# is not either. Eight interfaces at most.
modes=''
count=0
if have ethtool; then
    for line in $seen; do
        case $line in
        *' kind=real type=1 carrier=1'*) ;;
        *) continue ;;
        esac
        count=$((count + 1))
        [ "$count" -le 8 ] || break
        modes="$modes$(within 3 ethtool "${line%% *}" 2>/dev/null)$IFS"
    done
fi
unset IFS
set +f
fact uptime "$uptime"
fact interfaces "$seen"
[ -n "$again" ] && fact again "$again"
fact modes "$modes"
"""
