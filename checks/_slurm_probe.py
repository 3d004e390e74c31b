"""The probes of the check slurm."""

# What both probes need: finds slurm.conf and reads it with what it includes. The awk prints, in
# the order of reading, "file PATH" and either "KEY value" of a few keys (keys=1) or each line as
# Slurm takes it: joined, without comments, blanks made one, passwords left out.
_CONF = r"""
# where Slurm is that no distribution has packed
for prefix in /opt/slurm /opt/slurm/current '/usr/local/slurm' /cm/local/apps/slurm/current; do
    [ -d "$ROOT$prefix" ] && PATH=$PATH:$ROOT$prefix/sbin:$ROOT$prefix/bin
done
find_conf() {
    conf=none
    for file in "${SLURM_CONF:-/etc/slurm/slurm.conf}" /etc/slurm/slurm.conf \
        /run/slurm/conf/slurm.conf /var/spool/slurmd/conf-cache/slurm.conf \
        /var/spool/slurm/d/conf-cache/slurm.conf /etc/slurm-llnl/slurm.conf \
        /usr/local/etc/slurm.conf /usr/local/slurm/etc/slurm.conf /opt/slurm/etc/slurm.conf \
        /opt/slurm/current/etc/slurm.conf; do
        [ -e "$ROOT$file" ] || continue
        conf=unreadable
        [ -r "$ROOT$file" ] || continue
        conf=$file
        break
    done
    [ "$conf" = none ] || return
    for file in /etc/sysconfig/slurmd /etc/default/slurmd; do
        [ -r "$ROOT$file" ] || continue
        while read -r line; do
            case $line in
            SLURM_CONF=*) path=${line#*=} ;;
            SLURMD_OPTIONS=*-f\ *) path=${line#*-f } ;;
            *) continue ;;
            esac
            path=${path#[\"\']}
            path=${path%%[\"\' ]*}
            [ -r "$ROOT$path" ] && [ -n "$path" ] && conf=$path
        done <"$ROOT$file"
    done
}
# Report the processes in state D, after a line that says that they were looked for.
look_waiting() {
    if have ps && waiting=$(within 4 ps -eo pid=,stat=,wchan:32=,comm= 2>/dev/null); then
        {
            echo ps
            printf '%s\n' "$waiting" | awk '$2 ~ /^D/' | head -n 20
        } | lines waiting
    else
        fact waiting ''
    fi
}
read_conf() {
    within 3 awk -v root="$ROOT" -v top="$ROOT$conf" -v keys="$1" '
        function take(path, depth,    line, more, key) {
            print "file " path
            while ((getline line < path) > 0) {
                sub(/\r$/, "", line)
                while (sub(/\\[ \t]*$/, "", line) && (getline more < path) > 0) {
                    sub(/\r$/, "", more); line = line more
                }
                sub(/#.*/, "", line); gsub(/[ \t]+/, " ", line)
                sub(/^ /, "", line); sub(/ $/, "", line); sub(/ ?= ?/, "=", line)
                if (line == "") continue
                if (tolower(line) ~ /^include /) {
                    more = substr(line, 9)
                    if (more ~ /^\//) more = root more
                    else { key = path; sub(/[^\/]*$/, "", key); more = key more }
                    if (depth < 5) take(more, depth + 1)
                    continue
                }
                key = tolower(line); sub(/=.*/, "", key)
                if (!keys) {
                    if (key ~ /pass/) sub(/=.*/, "=...", line)
                    print line
                } else if (key ~ /^(clustername|slurmdspooldir|slurmdpidfile|debugflags)$/ ||
                    key ~ /^(slurmdparameters|slurmctldparameters|fastschedule)$/) {
                    sub(/^[^=]*=/, "", line); gsub(/"/, "", line)
                    print key, line
                }
            }
            close(path)
        }
        BEGIN { take(top, 0) }' </dev/null 2>/dev/null
}
"""

PROBE = (
    _CONF
    + r"""
tools=
for tool in scontrol sinfo; do
    have "$tool" && tools="$tools $tool"
done
case $ask in
auto | node) fact tools "${tools# }" ;;
*) fact tools '' ;;
esac
find_conf
installed=no
have slurmd && installed=yes
fact conf "$conf"
fact installed "$installed"
[ "$installed$conf$tools" = nonone ] && return

host=
read -r host 2>/dev/null <"$ROOT/proc/sys/kernel/hostname"
fact host "$host"
# the node's own addresses: of IPv4 as they are written, of IPv6 in 32 digits
fact addresses "$(awk '
    FILENAME ~ /if_inet6$/ { print $1; next }
    / host LOCAL/ && last !~ /^127\./ { print last }
    { last = $2 }' "$ROOT/proc/net/fib_trie" "$ROOT/proc/net/if_inet6" 2>/dev/null | sort -u |
    head -n 500)"
spool='/var/spool/slurmd' pidfile='/run/slurmd.pid' cluster='' flags='' files='' parameters=''
if [ "${conf#/}" != "$conf" ]; then
    said=$(read_conf 1)
    IFS=$cc_nl
    set -f
    for line in $said; do
        value=${line#* }
        case $line in
        'file '*) files="$files$cc_nl$value" ;;
        'clustername '*) cluster=$value ;;
        'slurmdspooldir '*) spool=$value ;;
        'slurmdpidfile '*) pidfile=$value ;;
        'debugflags '*) flags=$value ;;
        slurm*parameters\ * | 'fastschedule '*) parameters="$parameters$line;" ;;
        esac
    done
    limits=$ROOT${conf%/*}/cgroup.conf
    [ -r "$limits" ] && files="$files$cc_nl$limits"
    # shellcheck disable=SC2086 # the lines are wanted
    if have sha256sum; then
        within 4 sha256sum $files 2>/dev/null | lines digests
    else
        within 4 cksum $files 2>/dev/null | lines digests
    fi
    unset IFS
    set +f
fi
fact cluster "$cluster"
fact flags "$flags"
fact parameters "$parameters"

# the process slurmd: by its file, which may be stale, then by name
slurmd='' name=''
named() {
    read -r name 2>/dev/null <"$ROOT/proc/$1/comm" && [ "$name" = slurmd ]
}
case $pidfile in
*%*) ;;
*) read -r slurmd 2>/dev/null <"$ROOT$pidfile" ;;
esac
if [ -z "$slurmd" ] || ! named "$slurmd"; then
    slurmd=
    if [ "$installed" = yes ]; then
        for file in "$ROOT"/proc/[0-9]*/comm; do
            read -r name 2>/dev/null <"$file" || continue
            [ "$name" = slurmd ] && slurmd=${file%/comm} && slurmd=${slurmd##*/} && break
        done
    fi
fi
fact slurmd "${slurmd:-stopped}"
node=${host%%.*}
words=
if [ -n "$slurmd" ]; then
    words=$(tr '\000' ' ' 2>/dev/null <"$ROOT/proc/$slurmd/cmdline")
    set -f
    # shellcheck disable=SC2086 # the words are wanted
    set -- $words
    set +f
    while [ "$#" -gt 1 ]; do
        case $1 in
        -N) node=$2 ;;
        -N?*) node=${1#-N} ;;
        esac
        shift
    done
fi
fact node "$node"
enabled=no
for file in "$ROOT"/etc/systemd/system/*.wants/slurmd.service \
    "$ROOT"/etc/runlevels/*/slurmd "$ROOT"/etc/rc[35].d/S[0-9][0-9]slurmd; do
    # a link may lead to where it is found on the node only
    { [ -e "$file" ] || [ -L "$file" ]; } && enabled=yes
done
fact enabled "$enabled"
steps=
case " $tools " in
*' scontrol '*)
    if [ -n "$slurmd" ]; then
        # of several slurmds on one machine, the one that was found
        case $words in
        *-N*) set -- env SLURMD_NODENAME="$node" ;;
        *) set -- ;;
        esac
        said=$(within 4 "$@" scontrol show slurmd 2>&1)
        fact answer_status "$?"
        fact answer "$said"
        case $said in
        *'Active Steps '*) steps=${said#*Active Steps } && steps=${steps%%"$cc_nl"*} ;;
        esac
    fi
    ;;
esac

# put $2 in place of each $1 in $spool
replace() {
    while :; do
        case $spool in
        *"$1"*) spool=${spool%%"$1"*}$2${spool#*"$1"} ;;
        *) return ;;
        esac
    done
}
case $node$host in
*%*) ;;
*)
    replace %n "$node"
    replace %h "${host%%.*}"
    ;;
esac
fact spool "$spool"
if [ "$installed" = yes ] || [ -d "$ROOT$spool" ] || [ "$conf" = none ]; then
    listing=$(within 3 ls -ldn "$ROOT$spool/." 2>&1)
    status=$?
    if [ "$status" = 0 ]; then
        # shellcheck disable=SC2086 # the words are wanted
        set -- $listing
        fact spool_mode "$1"
    elif [ "$status" -ge 124 ]; then
        fact spool_mode hung
    else
        fact spool_mode "${listing##*: }"
    fi
    if [ "$status" -lt 124 ]; then
        fact space "$(within 3 df -P -k "$ROOT$spool" 2>/dev/null)"
        fact inodes "$(within 3 df -P -i "$ROOT$spool" 2>/dev/null)"
    fi
fi

count=0 other=none
for file in "$ROOT"/dev/nvidia[0-9]*; do
    [ -e "$file" ] && count=$((count + 1))
done
for file in "$ROOT/dev/kfd" "$ROOT"/dev/dri/renderD*; do
    [ -e "$file" ] && other=other
done
[ "$count" = 0 ] || other="nvidia $count"
fact gpus "$other"

# Processes that wait in the kernel: one that is there for minutes adds 1 to the load, so where
# there is less, there are none. Where steps run, a look through all processes costs too much to
# be made for nothing: such a node is asked again if Slurm says that a task could not be killed.
load=
read -r load _ 2>/dev/null <"$ROOT/proc/loadavg"
case $load/$steps in
0.[0-8]*) fact waiting none ;;
*/*=\ NONE* | */) look_waiting ;;
*) fact waiting '' ;;
esac

# What the node has, as slurmd counts it; it writes nothing and asks no controller. It may look at
# the GPUs for that: read up to the mark, for what hangs in their driver keeps the pipe open.
if [ "$installed" = yes ]; then
    said=$({
        within 5 slurmd -C 2>/dev/null
        printf '\n%s %s\n\n' "$cc_mark" "$?"
    } | sed -n -e "/^$cc_mark /{s/^[^ ]*/status/p;q;}" -e 99q -e '/RealMemory=/p')
    fact hardware_status "${said##*status }"
    said=${said%%status *}
    fact hardware "${said%"$cc_nl"}"
fi
"""
)

# Asked of one or two nodes where this machine cannot ask the controller, and of one node of each
# kind of slurm.conf. A cluster of 10,000 nodes must fit into one fact: those without a reason and
# with one name are put together by state and Gres.
FOLLOW_PROBE = (
    _CONF
    + r"""
look_waiting
if [ "$ask" != never ] && [ "$ask" != here ]; then
    if have scontrol; then
        said=$(within 10 scontrol show node -o 2>&1)
        status=$?
        fact asked.ping "$(within 9 scontrol ping 2>&1 | head -c 4000)"
    else
        status=127 said='no scontrol'
    fi
    case $status$said in
    0* | 124* | 137* | *'timed out'* | *contact*) ;; # sinfo would wait as long for the same
    *)
        if have sinfo && rows=$(within 9 sinfo -h -N -o '%N %P %t' 2>/dev/null); then
            status=0 said=$rows
        fi
        ;;
    esac
    fact asked.status "$status"
    if [ "$status" = 0 ]; then
        have scontrol && fact asked.version "$(within 4 scontrol show config 2>/dev/null |
            sed -n 's/^SLURM_VERSION[[:space:]]*=[[:space:]]*//p')"
        printf '%s\n' "$said" | awk '
            function word(key,   at, rest) {
                at = index($0, " " key "=")
                if (!at) return ""
                rest = substr($0, at + length(key) + 2)
                sub(/ .*/, "", rest)
                return rest
            }
            BEGIN { split("CPUTot Sockets CoresPerSocket ThreadsPerCore RealMemory", keys, " ") }
            !/^NodeName=/ { if (NF == 3 && !($0 in seen)) { seen[$0] = 1; print } next }
            {
                name = $1; sub(/^NodeName=/, "", name)
                host = word("NodeHostName"); address = word("NodeAddr"); gres = word("Gres")
                size = ""
                for (n = 1; n <= 5; n++) size = size " " keys[n] "=" word(keys[n])
                at = index($0, " Reason=")
                if (at || (host != "" && host != name)) {
                    end = ""
                    if (at) {
                        match($0, / (Comment|Extra)=/)
                        end = substr($0, RSTART && RSTART < at ? RSTART : at)
                    }
                    print "NodeName=" name " NodeHostName=" host " NodeAddr=" address \
                        " State=" word("State") " Gres=" gres size end
                } else {
                    kind = word("State") " Gres=" gres size
                    if (address != "" && address != name) name = name "@" address
                    if (kind in nodes) nodes[kind] = nodes[kind] "," name
                    else nodes[kind] = name
                }
            }
            END { for (kind in nodes) print "Nodes=" nodes[kind] " State=" kind }' |
            head -c 400000 | lines asked.nodes
    else
        fact asked.error "$(printf '%s\n' "$said" | tail -n 2 | head -c 500)"
    fi
fi
find_conf
if [ "${conf#/}" != "$conf" ]; then
    {
        read_conf ''
        limits=$ROOT${conf%/*}/cgroup.conf
        if [ -r "$limits" ]; then
            conf=${conf%/*}/cgroup.conf
            read_conf ''
        fi
    } | sed "s|^file $ROOT|file |" | head -c 90000 | lines lines
fi
"""
)
