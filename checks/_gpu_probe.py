"""The probe of the check gpu."""

PROBE = r"""
# In a job of Slurm that has not all GPUs of the node, it could not be said what is wrong with it.
if [ -n "$CC_GPUS_HIDDEN" ]; then
    fact part "$CC_GPUS_HIDDEN"
    return
fi
# Display controllers and accelerators: "ADDRESS VENDOR DEVICE DRIVER" each, virtual functions out
pci=unreadable
if [ -d "$ROOT/sys/bus" ]; then
    pci=
    for device in "$ROOT"/sys/bus/pci/devices/*; do
        class='' vendor='' model=''
        read -r class 2>/dev/null <"$device/class"
        case $class in
        0x03* | 0x1200*) ;;
        *) continue ;;
        esac
        [ -e "$device/physfn" ] && continue
        read -r vendor 2>/dev/null <"$device/vendor"
        read -r model 2>/dev/null <"$device/device"
        driver=$(readlink "$device/driver" 2>/dev/null)
        driver=${driver##*/}
        pci="$pci${pci:+$cc_nl}${device##*/} ${vendor#0x} ${model#0x} ${driver:-none}"
    done
fi
fact pci "$pci"

# first_line FILE: its first line in $line; or absent, or unreadable
first_line() {
    line=absent
    [ -e "$1" ] || return
    line=unreadable
    [ -r "$1" ] && read -r line <"$1"
}
first_line "$ROOT/proc/driver/nvidia/version"
kernel=$line
fact kernel "$kernel"
first_line "$ROOT/sys/module/nvidia/version"
fact module "$line"
for folder in "$ROOT"/proc/driver/nvidia/gpus/*; do
    [ -r "$folder/information" ] || continue
    minor='-' model='-'
    while read -r key value; do
        case $key in
        Model:) model=$value ;;
        Device) minor=${value##*[!0-9]} ;;
        esac
    done <"$folder/information"
    printf '%s %s %s\n' "${folder##*/}" "${minor:--}" "$model"
done | lines boards
for folder in /usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu /usr/lib64 /usr/lib; do
    for file in "$ROOT$folder"/libnvidia-ml.so.[0-9]*.[0-9]*; do
        [ -e "$file" ] && printf '%s\n' "${file##*.so.}"
    done
done | lines libraries
for file in "$ROOT"/usr/local/cuda-*/compat/libcuda.so.[0-9]*.[0-9]*; do
    [ -e "$file" ] && printf '%s\n' "${file#"$ROOT"}"
done | lines compat
container=
for file in /run/systemd/container /.dockerenv /run/.containerenv; do
    [ -e "$ROOT$file" ] && container=$file
done
fact container "$container"
fact month "$(date +%Y-%m)"

smi=
have nvidia-smi && smi=nvidia-smi
for file in /usr/lib/wsl/lib/nvidia-smi /usr/local/nvidia/bin/nvidia-smi \
    /opt/bin/nvidia-smi /run/nvidia/driver/usr/bin/nvidia-smi; do
    [ -z "$smi" ] && [ -x "$ROOT$file" ] && smi=$ROOT$file
done
fact tool "${smi:-absent}"

# ask ARGUMENT…: what nvidia-smi says, but only lines with $keep, in $said, and its exit status in
# $status. What comes is read up to the mark, not to the end of the pipe: a process that hangs in
# the driver cannot be ended and keeps the pipe open. (By sed: some awks wait until their buffer
# is full.) What never ends is no answer, and shells take long over long texts.
keep=.
ask() {
    said=$({
        case $smi in
        (*/run/nvidia/driver/*) # a container has the driver, and its libraries with it
            as_root timeout -k 1 "$answer_seconds" chroot "${smi%/usr/bin/*}" nvidia-smi "$@" 2>&1
            ;;
        (*) within "$answer_seconds" "$smi" "$@" 2>&1 ;;
        esac
        # busybox's sed holds a line back until the next one comes
        printf '\n%s %s\n\n' "$cc_mark" "$?"
    } | sed -n -e "/^$cc_mark /{s/^[^ ]*/status/p;q;}" -e '20000q' -e p |
        awk -v keep="$keep" '
            /^status / { ended = $0; next }
            $0 ~ keep && n++ < 4000 { kept = kept $0 "\n" }
            END { if (ended && n <= 4000) print kept ended; else print "status flood" }')
    status=${said##*status }
    said=${said%status *}
    said=${said%"$cc_nl"}
    if [ "$status" = 14 ]; then status=0; fi # a damaged infoROM, of which it warns
}

ask_gpus() {
    fields=index,name,uuid,pci.bus_id,driver_version,compute_cap,memory.total,memory.used
    fields=$fields,utilization.gpu,temperature.gpu,pstate,mig.mode.current
    refused=
    while ask --query-gpu="$fields" --format=csv; do
        case $said in
        *'is not a valid field to query'*) ;;
        *) break ;;
        esac
        field=${said#*\"}
        field=${field%%\"*}
        case ,$fields, in
        *",$field,"*) ;;
        *) break ;;
        esac
        refused="$refused $field"
        fields=,$fields,
        fields=${fields%%",$field,"*},${fields#*",$field,"}
        fields=${fields#,}
        fields=${fields%,}
    done
    gpus=$said gpus_status=$status
}

ask_processes() {
    ask --query-compute-apps=gpu_bus_id,gpu_uuid,pid,used_memory,process_name --format=csv
    apps=$said apps_status=$status
}

# The PCI addresses of GPUs with more memory in use than is allowed without a process, "?" each
# where the address is not known
held_gpus() {
    printf '%s\n' "$gpus" | awk -F ', *' -v most="$held_mib" '
        !column {
            for (i = 1; i <= NF; i++) {
                if ($i ~ /^memory\.used/) column = i
                if ($i == "pci.bus_id") address = i
            }
            next
        }
        $column + 0 > most { print address ? $address : "?" }'
}

# "PID MINOR" for each process with a GPU's device file open; as root those of all users
device_files() {
    as_root timeout -k 1 5 ls -l "$ROOT"/proc/[0-9]*/fd /dev/null 2>/dev/null
    set -- "$?"
    case $1 in
    126 | 127)
        within 5 ls -l "$ROOT"/proc/[0-9]*/fd /dev/null 2>/dev/null
        echo 'seen own'
        ;;
    *) echo 'seen all' ;;
    esac
}
open_files() {
    device_files | awk '
        /^seen / { print }
        /\/fd:$/ { n = split($0, part, "/"); pid = part[n - 1] }
        / -> \/dev\/nvidia[0-9]+$/ { sub(/.*nvidia/, ""); print pid, $0 }' | sort -u
}

# what /proc has on the process $1: $state (gone, where there is none), $parent, $threads, $command
stat_of() {
    state=gone parent=- threads=- command=- stat=
    read -r stat 2>/dev/null <"$ROOT/proc/$1/stat" || return
    command=${stat#*\(}
    command=${command%)*}
    # shellcheck disable=SC2086 # the words are wanted
    set -- ${stat##*) }
    state=$1 parent=$2 threads=${18}
}

# A process that is asked for twice: is it still in the state that does not pass by itself?
states() {
    odd=
    for pid in $pids; do
        stat_of "$pid"
        case $state in
        D | Z | X | gone) odd="$odd $pid/$state" ;;
        esac
    done
}

# "PID PARENT STATE THREADS USER MINORS WAITS-ON PLACE PARENT-COMMAND COMMAND" of each process
describe() {
    for pid in $pids; do
        stat_of "$pid"
        case $state in
        D | Z | X)
            case " $before " in
            *" $pid/$state "*) ;;
            *) state=S ;; # it was in another one two seconds ago
            esac
            ;;
        esac
        waits='' place='' above=''
        read -r waits 2>/dev/null <"$ROOT/proc/$pid/wchan"
        read -r above 2>/dev/null <"$ROOT/proc/$parent/comm"
        if [ -r "$ROOT/proc/$pid/cgroup" ]; then
            while IFS=: read -r _ _ group; do
                case $group in
                *docker* | *libpod* | *kubepods* | *containerd* | *lxc* | *job_* | *machine*)
                    place=${group%% *}
                    ;;
                esac
            done <"$ROOT/proc/$pid/cgroup"
        fi
        minors=$(printf '%s\n' "$open" | while read -r who minor; do
            [ "$who" = "$pid" ] && printf '%s,' "$minor"
        done)
        minors=${minors%,}
        # shellcheck disable=SC2046 # the words are wanted
        set -- $(within 2 ls -ld "$ROOT/proc/$pid" 2>/dev/null)
        printf '%s %s %s %s %s %s %s %s %s %s\n' "$pid" "$parent" "$state" "$threads" \
            "${3:--}" "${minors:--}" "${waits:--}" "${place:--}" "${above%% *}" "$command"
    done
}

all_pids() {
    pids=$({
        printf '%s\n' "$apps" | awk -F ', *' '
            !column { for (i = 1; i <= NF; i++) if ($i == "pid") column = i; next }
            $column ~ /^[0-9]+$/ { print $column }'
        printf '%s\n' "$details" | sed -n 's/.*<pid>\([0-9]*\)<.*/\1/p'
        printf '%s\n' "$open" | sed -n 's/^\([0-9]*\) .*/\1/p'
    } | sort -un)
}

look() {
    ask_processes
    open='' unlisted=''
    held=$(held_gpus)
    [ -n "$held" ] && open=$(open_files)
    for address in $held; do
        case $apps in
        *"$address"*) ;;
        *) unlisted=yes ;;
        esac
    done
    all_pids
}

if [ -n "$smi" ]; then
    ask_gpus
    details='' details_status=- apps='' apps_status=- banner='' open='' before=''
    if [ "$gpus_status" = 0 ]; then
        keep='<(.xml|driver_version|kmd_version|cuda_version|cuda_umd_version|attached_gpus'
        keep=$keep'|gpu id|virtualization_mode|process_info|pid|process_name|used_memory)[ >=]'
        ask -q -x
        details=$said details_status=$status
        keep=.
        case $details in
        *'<cuda_version>'[0-9N]* | *'<cuda_umd_version>'[0-9N]*) ;;
        *)
            keep=Version
            ask
            banner=$said
            keep=.
            ;;
        esac
        look
        states
        if [ -n "$odd$unlisted" ]; then
            # what is on its way out now is gone then
            sleep 2
            before=$odd
            ask_gpus
            look
        fi
    fi
    fact status "$gpus_status"
    fact gpus "$gpus"
    fact refused "${refused# }"
    fact details "$details"
    fact details_status "$details_status"
    fact banner "$banner"
    fact apps "$apps"
    fact apps_status "$apps_status"
    if [ "$gpus_status" = 0 ]; then
        describe | lines processes
    else
        fact processes ''
    fi
    case $open in
    *'seen all'*) fact seen all ;;
    *) fact seen own ;;
    esac
    # /proc may hide what is not one's own (hidepid)
    if read -r line 2>/dev/null <"$ROOT/proc/1/stat"; then fact proc all; else fact proc own; fi
fi
"""
