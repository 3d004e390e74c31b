"""What a node tells of itself for its fingerprint: lines "FIELD VALUE", most of them from files."""

# Fields of one kind begin with the kind's name and a dot. What belongs to one node alone (its
# name, addresses, serial numbers) is not asked for.
PROBE = r"""
# $text is the first line of a file, "" where it cannot be read
first() {
    text=''
    read -r text 2>/dev/null <"$1"
}
tell() { [ -z "$2" ] || printf '%s %s\n' "$1" "$2"; }
from() {
    first "$2"
    tell "$1" "$text"
}

system() {
    while IFS='=' read -r key value; do
        [ "$key" = PRETTY_NAME ] || continue
        value=${value#[\"\']}
        tell os "${value%[\"\']}"
    done 2>/dev/null <"$ROOT/etc/os-release"
    from kernel "$ROOT/proc/sys/kernel/osrelease"
    from kernel_build "$ROOT/proc/sys/kernel/version"
    from cmdline "$ROOT/proc/cmdline"
    from product "$ROOT/sys/class/dmi/id/product_name"
    from bios "$ROOT/sys/class/dmi/id/bios_version"
    from clocksource "$ROOT/sys/devices/system/clocksource/clocksource0/current_clocksource"
    text=''
    have getconf && text=$(within 2 getconf GNU_LIBC_VERSION 2>/dev/null)
    tell glibc "$text"
    text=''
    from selinux "$ROOT/sys/fs/selinux/enforce"
}

processors() {
    awk -F '[ \t]*:[ \t]*' '
        $1 == "processor" { threads++ }
        $1 == "physical id" { chip = $2; chips[chip] = 1 }
        $1 == "core id" { cores[chip "," $2] = 1 }
        ($1 == "model name" || $1 == "cpu" || $1 == "CPU part") && model == "" { model = $2 }
        $1 == "microcode" { codes[$2] = 1 }
        END {
            for (one in chips) sockets++
            for (one in cores) count++
            for (one in codes) { kinds++; code = one }
            if (model != "") print "cpu.model " model
            if (sockets) print "cpu.sockets " sockets
            if (count) print "cpu.cores " count
            if (threads) print "cpu.threads " threads
            if (kinds == 1) print "cpu.microcode " code
            if (kinds > 1) print "cpu.microcode " kinds " different ones"
        }' "$ROOT/proc/cpuinfo" 2>/dev/null
    from cpu.smt "$ROOT/sys/devices/system/cpu/smt/control"
    from cpu.online "$ROOT/sys/devices/system/cpu/online"
    governors=''
    for place in "$ROOT"/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do
        value=''
        read -r value 2>/dev/null <"$place"
        case " $governors " in
        *" $value "*) ;;
        *) governors="$governors${governors:+ }$value" ;;
        esac
    done
    tell cpu.governor "$governors"
    from numa.nodes "$ROOT/sys/devices/system/node/online"
}

memory() {
    while read -r key value _; do
        case $key in
        MemTotal:) tell memory.total_kib "$value" ;;
        SwapTotal:) tell memory.swap_kib "$value" ;;
        Hugepagesize:) tell memory.huge_page_kib "$value" ;;
        esac
    done 2>/dev/null <"$ROOT/proc/meminfo"
    for place in "$ROOT"/sys/kernel/mm/hugepages/hugepages-*/nr_hugepages; do
        [ -e "$place" ] || continue
        name=${place%/nr_hugepages}
        from "memory.huge_pages_of_${name##*hugepages-}" "$place"
    done
    from memory.transparent_huge_pages "$ROOT/sys/kernel/mm/transparent_hugepage/enabled"
}

settings() {
    # Not by `read`: the kernel gives a reader of single bytes the first digit alone.
    (
        cd "$ROOT/proc/sys" 2>/dev/null && grep -s . \
            fs/aio-max-nr fs/nr_open kernel/numa_balancing kernel/perf_event_paranoid \
            kernel/pid_max kernel/randomize_va_space kernel/shmall kernel/shmmax kernel/shmmni \
            kernel/yama/ptrace_scope net/core/netdev_max_backlog net/core/rmem_max \
            net/core/somaxconn net/core/wmem_max net/ipv4/ip_local_port_range \
            net/ipv4/tcp_congestion_control net/ipv4/tcp_mtu_probing net/ipv4/tcp_rmem \
            net/ipv4/tcp_sack net/ipv4/tcp_timestamps net/ipv4/tcp_wmem \
            sunrpc/tcp_slot_table_entries vm/dirty_background_ratio vm/dirty_ratio \
            vm/max_map_count vm/overcommit_memory vm/overcommit_ratio \
            vm/swappiness vm/zone_reclaim_mode | sed 's/:/ /; s/^/sysctl./'
    )
    while read -r line; do
        case $line in
        'Max locked memory '*) name=memlock line=${line#Max locked memory} ;;
        'Max open files '*) name=nofile line=${line#Max open files} ;;
        'Max stack size '*) name=stack line=${line#Max stack size} ;;
        'Max core file size '*) name=core line=${line#Max core file size} ;;
        *) continue ;;
        esac
        line=${line#"${line%%[! ]*}"} # soft, hard, unit
        line=${line#"${line%% *}"}
        line=${line#"${line%%[! ]*}"}
        tell "limit.$name" "${line%% *}"
    done 2>/dev/null <"$ROOT/proc/self/limits"
}

# What a card runs, by ethtool; not of virtual functions, which may be many, and not of cards that
# have it in a file (ib.NAME below).
firmware() {
    [ "$asked" -lt 8 ] && [ -n "$ethtool" ] || return
    [ -e "$1/device/physfn" ] || [ -d "$1/device/infiniband" ] && return
    asked=$((asked + 1))
    text=$(within 2 "$ethtool" -i "$name" 2>/dev/null)
    case $text in
    *'firmware-version: '*)
        text=${text#*firmware-version: }
        text=${text%%"$cc_nl"*}
        [ "$text" = N/A ] || tell "firmware.$name" "$text"
        ;;
    esac
}

cards() {
    asked=0 ethtool='' drivers=''
    have ethtool && ethtool=ethtool
    for place in "$ROOT"/sys/class/net/*/device; do
        [ -e "$place" ] || continue
        place=${place%/device}
        name=${place##*/}
        driver=$(readlink "$place/device/driver" 2>/dev/null)
        # a vendor's own has a version, the kernel's mostly none
        case " $drivers " in
        *" $driver "*) ;;
        *) from "driver.${driver##*/}" "$place/device/driver/module/version" ;;
        esac
        drivers="$drivers $driver"
        first "$place/device/vendor"
        card=${text#0x}
        first "$place/device/device"
        card=$card${text:+:}${text#0x}
        first "$place/speed"
        speed=$text
        first "$place/mtu"
        printf 'net.%s %s\nspeed.%s %s\nmtu.%s %s\n' "$name" "${driver##*/}${card:+ $card}" \
            "$name" "${speed:--}" "$name" "$text"
        firmware "$place"
    done
    for place in "$ROOT"/sys/class/infiniband/*/fw_ver; do
        [ -e "$place" ] || continue
        name=${place%/fw_ver}
        from "ib.${name##*/}" "$place"
    done
    for place in "$ROOT"/sys/bus/pci/devices/*/class; do
        class='' vendor='' model=''
        read -r class 2>/dev/null <"$place"
        case $class in
        0x0300* | 0x0302* | 0x0380* | 0x1200*) ;;
        *) continue ;;
        esac
        read -r vendor 2>/dev/null <"${place%/class}/vendor"
        read -r model 2>/dev/null <"${place%/class}/device"
        [ -e "${place%/class}/physfn" ] && continue
        case $vendor in
        0x10de | 0x1002 | 0x8086) printf '%s:%s\n' "${vendor#0x}" "${model#0x}" ;;
        esac
    done | sort | uniq -c | while read -r count card; do
        tell "gpu.cards.$card" "$count"
    done
    while read -r line; do
        case $line in
        NVRM*) tell gpu.driver "${line#*: }" ;;
        esac
    done 2>/dev/null <"$ROOT/proc/driver/nvidia/version"
    # AMD's, where it is not the kernel's own
    from gpu.driver "$ROOT/sys/module/amdgpu/version"
    {
        for place in "$ROOT"/proc/driver/nvidia/gpus/*/information; do
            [ -e "$place" ] || continue
            while IFS=':' read -r key value; do
                value=${value#"${value%%[! 	]*}"}
                case $key in
                Model*) printf 'gpu.model %s\n' "$value" ;;
                'Video BIOS'*) printf 'gpu.vbios %s\n' "$value" ;;
                esac
            done <"$place"
        done
        for place in "$ROOT"/sys/bus/pci/drivers/amdgpu/*/vbios_version; do
            first "$place"
            tell gpu.vbios "$text"
        done
    } 2>/dev/null | sort | uniq -c | while read -r count key value; do
        tell "$key" "$count x $value"
    done
}

# Of local ones the source is the node's own, and those of containers and jobs come and go.
mounts() {
    count=0
    while read -r source target kind options _; do
        case $kind in
        nfs | nfs4 | lustre | beegfs | gpfs | ceph | cifs | glusterfs | wekafs) ;;
        ext[234] | xfs | btrfs | f2fs | zfs | bcachefs | tmpfs)
            case $target in
            '/run' | '/run/'* | '/sys/'* | '/proc/'* | '/dev' | '/tmp' | '/tmp/'*) continue ;;
            '/snap/'* | '/var/lib/'*/*) continue ;;
            esac
            count=$((count + 1))
            [ "$count" -le 40 ] || continue
            source='-'
            ;;
        *) continue ;;
        esac
        printf 'mount.%s %s %s %s\n' "$target" "$kind" "$source" "$options"
    done 2>/dev/null <"$ROOT/proc/mounts"
}

names() {
    local_stub=''
    while read -r key value; do
        case $key in
        nameserver | search | options) printf 'resolv.%s %s\n' "$key" "$value" ;;
        esac
        [ "$value" = 127.0.0.53 ] && local_stub=yes
    done 2>/dev/null <"$ROOT/etc/resolv.conf"
    [ -n "$local_stub" ] && while read -r key value; do
        [ "$key" = nameserver ] && printf 'resolv.upstream %s\n' "$value"
    done 2>/dev/null <"$ROOT/run/systemd/resolve/resolv.conf"
    for file in chrony.conf chrony/chrony.conf ntp.conf ntpsec/ntp.conf systemd/timesyncd.conf; do
        [ -r "$ROOT/etc/$file" ] || continue
        while read -r key value _; do
            case $key in
            server | pool | peer) printf 'time.%s %s\n' "$key" "$value" ;;
            NTP=*) printf 'time.server %s\n' "${key#NTP=}" ;;
            esac
        done <"$ROOT/etc/$file"
    done
    # the login user is another one on some nodes, so that one more name is no account of theirs
    login=$(within 4 id -un 2>/dev/null)
    for name in root slurm munge $accounts; do
        [ "$name" = "$login" ] && login=
    done
    # shellcheck disable=SC2086 # the names are wanted
    within 4 getent passwd slurm munge $accounts $login 2>/dev/null |
        while IFS=: read -r name _ uid gid _; do
            kind=account
            [ "$name" = "$login" ] && kind=user
            tell "$kind.$name" "uid=$uid gid=$gid"
        done
}

# The sum of the file that is called $1 in the fingerprint, of what $2 prints
sum_of() {
    text=$(sha256sum 2>/dev/null)
    text=${text%% *}
    [ "$text" = "$nothing" ] || tell "file.$1" "$text"
}

files() {
    have sha256sum || return
    nothing=$(sha256sum </dev/null)
    nothing=${nothing%% *}
    own=''
    read -r own 2>/dev/null <"$ROOT/proc/sys/kernel/hostname"
    own=${own%%.*}
    # Debian's line with the node's own name, and comments, may differ
    sed "s/#.*//; /^[[:space:]]*$/d; /[[:space:]]${own:-localhost}\([.[:space:]]\|\$\)/d" \
        "$ROOT/etc/hosts" 2>/dev/null | sort | sum_of hosts
    for name in nsswitch.conf slurm/gres.conf slurm/cgroup.conf security/limits.conf; do
        [ -r "$ROOT/etc/$name" ] || continue
        sed 's/#.*//; s/[[:space:]]*$//; /^$/d' "$ROOT/etc/$name" 2>/dev/null | sum_of "$name"
    done
}

versions() {
    for pair in slurm:slurmd:-V munge:munge:--version apptainer:apptainer:--version \
        singularity:singularity:--version podman:podman:--version docker:docker:--version \
        enroot:enroot:version mpi:mpirun:--version; do
        rest=${pair#*:}
        have "${rest%:*}" || continue
        text=$(within 3 "${rest%:*}" "${rest#*:}" 2>/dev/null)
        tell "version.${pair%%:*}" "${text%%"$cc_nl"*}"
    done
    text=$(readlink "$ROOT/usr/local/cuda" 2>/dev/null)
    [ -n "$text" ] || text=$(readlink "$ROOT/etc/alternatives/cuda" 2>/dev/null)
    tell version.cuda_toolkit "${text##*/}"
}

# How the GPUs are set, in $set: of each setting its values, each with the number of GPUs that have
# it. One question, as each takes a second or two where no persistence mode keeps the driver up. It
# is read up to the mark, not to the end of the pipe: what hangs in the driver cannot be ended.
gpu_settings() {
    set='' smi=''
    have nvidia-smi && smi=nvidia-smi
    for file in /usr/lib/wsl/lib/nvidia-smi /usr/local/nvidia/bin/nvidia-smi \
        /opt/bin/nvidia-smi /run/nvidia/driver/usr/bin/nvidia-smi; do
        [ -z "$smi" ] && [ -x "$ROOT$file" ] && smi=$ROOT$file
    done
    [ -n "$smi" ] && [ -e "$ROOT/proc/driver/nvidia/version" ] || return
    wanted=persistence_mode,ecc.mode.current,mig.mode.current,power.limit,compute_mode
    while :; do
        said=$({
            within 8 "$smi" --query-gpu="$wanted" --format=csv 2>/dev/null
            printf '\n%s %s\n\n' "$cc_mark" "$?"
        } | sed -n -e "/^$cc_mark /{s/^[^ ]*/status/p;q;}" -e 300q -e p)
        status=${said##*status }
        case $said in
        *'is not a valid field to query'*) ;;
        *) break ;;
        esac
        # an old driver does not know the field: it is asked for the others
        field=${said#*\"}
        field=${field%%\"*}
        case ,$wanted, in
        *",$field,"*) ;;
        *) break ;;
        esac
        wanted=,$wanted,
        wanted=${wanted%%",$field,"*},${wanted#*",$field,"}
        wanted=${wanted#,}
        wanted=${wanted%,}
    done
    case $status in
    0 | 14) set=$said ;; # 14: a damaged infoROM, of which it warns beside a whole answer
    *) set="failed $status" ;;
    esac
}

# What gpu_settings heard as fields, values such as [N/A] and errors left out
set_as_fields() {
    printf '%s\n' "$set" | awk -F ', *' '
        /^status / { exit }
        !columns && /(persistence|compute)_mode|\.mode\.current|power\.limit/ {
            columns = NF
            for (i = 1; i <= NF; i++) {
                sub(/ \[.*/, "", $i)
                if ($i !~ /^(persistence_mode|compute_mode|(ecc|mig)\.mode\.current|power\.limit)$/)
                    continue
                name[i] = $i
                sub(/\.current$/, "", name[i])
                sub(/\./, "_", name[i])
            }
            next
        }
        columns && NF == columns {
            for (i in name) {
                if ($i ~ /^\[/ || $i == "N/A" || $i == "") continue
                if (!count[i, $i]++) {
                    order[++kinds] = i
                    value[kinds] = $i
                }
            }
        }
        END {
            for (k = 1; k <= kinds; k++)
                print "gpu." name[order[k]], count[order[k], value[k]] " x " value[k]
        }'
}

set=''
if [ -n "$gpu_settings" ]; then
    gpu_settings
    case $set in
    'failed '*) fact gpu_settings "$set" ;;
    *) fact gpu_settings asked ;;
    esac
else
    fact gpu_settings 'not asked'
fi

{
    system
    processors
    memory
    settings
    cards
    set_as_fields
    names
    files
    versions
    mounts # last: where an automounter has hundreds, what does not fit is mounts
} | awk -v each=$((${#cc_mark} + 16)) '
    { size += length($0) + each }
    size <= 15000 { print; next }
    !cut { cut = 1; print "cut yes" }' | lines fields
"""
