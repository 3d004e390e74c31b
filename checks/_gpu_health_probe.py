"""The probe of the check gpu_health: one question to nvidia-smi, and the kernel's log."""

from ._kernel_log import KERNEL_LOG, PICK_HEAD, PICK_TAIL

PROBE = (
    r"""
# In a job of Slurm that has not all GPUs of the node, it could not be said what is wrong with it.
if [ -n "$CC_GPUS_HIDDEN" ]; then
    fact part "$CC_GPUS_HIDDEN"
    return
fi
driver=absent
for file in /proc/driver/nvidia/version /sys/module/nvidia/version; do
    [ -e "$ROOT$file" ] && driver=loaded
done
smi=
have nvidia-smi && smi=nvidia-smi
for file in /usr/lib/wsl/lib/nvidia-smi /usr/local/nvidia/bin/nvidia-smi \
    /opt/bin/nvidia-smi /run/nvidia/driver/usr/bin/nvidia-smi; do
    [ -z "$smi" ] && [ -x "$ROOT$file" ] && smi=$ROOT$file
done
said=
fact driver "$driver"
fact tool "${smi:-absent}"

# ask ARGUMENT…: what nvidia-smi says in $said and its exit status in $status. Read up to the mark,
# not to the end of the pipe, which a process that hangs in the driver keeps open. Of its XML only
# the lines that are judged: the whole is some 20 KB for each GPU.
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
    } | sed -n -e "/^$cc_mark /{s/^[^ ]*/status/p;q;}" -e '200000q' -e p | awk '
        /^status [0-9]/ { ended = $0; next }
        /<nvidia_smi_log>|<gpu id=/ { xml = 1 }
        !xml { if (NR < 300) kept = kept $0 "\n"; next }
        /<(\/?gpu|product_name|virtualization_mode|gpu_recovery_action)[ >]/ ||
        /<(\/?gpu_reset_status|reset_required|drain_and_reset_recommended)>/ ||
        /<(\/?pcie_gen|\/?link_widths|(max|current)_link_(gen|width))>/ ||
        /<(\/?clocks_(throttle|event)_reasons|clocks_[a-z]*_reason_[hs]w_[a-z_]*)>/ ||
        /<(\/?ecc_(mode|errors)|current_ecc|\/?volatile|\/?aggregate|\/?double_bit|total)>/ ||
        /<[a-z_]*uncorrectable[a-z_]*>|<sram_threshold_exceeded>/ ||
        /<(\/?[a-z_]*_retirement|retired_count|\/?remapped_rows|remapped_row_[a-z]*)>/ ||
        /<(pending_blacklist|performance_state|gpu_util|\/?fabric|state|status)>/ {
            sub(/^[ \t]+/, "")
            if (count++ < 4000) kept = kept $0 "\n"
        }
        END { if (ended && count <= 4000) print kept ended; else print "status flood" }')
    status=${said##*status }
    said=${said%status *}
    said=${said%"$cc_nl"}
    if [ "$status" = 14 ]; then status=0; fi # a damaged infoROM, of which the check gpu tells
}

# Where -q -x gives no XML: the fields by name, without those that this nvidia-smi does not know
ask_fields() {
    fields=index,name,pci.bus_id,pstate,utilization.gpu,gpu_recovery_action,ecc.mode.current
    for count in volatile aggregate; do
        fields=$fields,ecc.errors.uncorrected.$count.total
    done
    for field in single_bit_ecc.count double_bit.count pending; do
        fields=$fields,retired_pages.$field
    done
    for field in correctable uncorrectable pending failure; do
        fields=$fields,remapped_rows.$field
    done
    for field in gen.current gen.max width.current width.max; do
        fields=$fields,pcie.link.$field
    done
    # the name before 535, which newer ones take as well
    for field in hw_slowdown hw_thermal_slowdown hw_power_brake_slowdown sw_thermal_slowdown; do
        fields=$fields,clocks_throttle_reasons.$field
    done
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
}

# pick: what the kernel's log has on GPUs: "COUNT PLACE LINE" for each kind of event on each GPU,
# the last of its kind
pick() {
    awk -v mark="$cc_mark" '
"""
    + PICK_HEAD
    + r"""
        # one message of several lines, of which the first names the GPU
        /NVRM: The NVIDIA GPU [0-9a-fA-F]+:/ { named = $0 }
        /NVRM: .*fallen off the bus/ && !/GPU/ && named != "" {
            $0 = named " has fallen off the bus"
            named = ""
        }
        !/S?Xid \(|has fallen off the bus/ { next }
        {
            grade = ""
            if (/Non-?fatal/) grade = "lesser"
            else if (/Fatal/) grade = "fatal"
            if (match($0, /S?Xid \([^)]*\): [0-9]+/)) key = substr($0, RSTART, RLENGTH) grade
            else if (match($0, /GPU (at )?(PCI:)?[0-9a-fA-F]+:[0-9a-fA-F:.]+/))
                key = substr($0, RSTART, RLENGTH)
            else next
            if (!(key in count) && ++kinds > 400) next
            count[key]++
            last[key] = NR " " substr($0, 1, 400)
        }
        END {
            for (key in count) print count[key], last[key]
"""
    + PICK_TAIL
    + r"""
        }'
}
log_hours=$xid_hours
"""
    + KERNEL_LOG
    + r"""
if [ -n "$smi" ] || [ "$driver" = loaded ]; then
    container=
    for file in /run/systemd/container /.dockerenv /run/.containerenv; do
        [ -e "$ROOT$file" ] && container=$file
    done
    fact container "$container"
    # "ADDRESS WIDTH MOST OF-SLOT" in lanes
    widths=
    for folder in "$ROOT"/proc/driver/nvidia/gpus/*; do
        device=$ROOT/sys/bus/pci/devices/${folder##*/}
        width='' most='' slot=''
        read -r width 2>/dev/null <"$device/current_link_width" || continue
        read -r most 2>/dev/null <"$device/max_link_width"
        read -r slot 2>/dev/null <"$device/../max_link_width"
        widths="$widths${widths:+$cc_nl}${folder##*/} ${width:--} ${most:--} ${slot:--}"
    done
    fact widths "$widths"
fi
if [ -n "$smi" ]; then
    refused='' nvlink='' nvlink_status=-
    ask -q -x
    case $status$said in
    *'<gpu id='* | flood* | 124* | 137* | 143* | *NVML* | *'NVIDIA driver'* | *'No devices'* | \
        *'device handle'*) ;;
    *) ask_fields ;;
    esac
    answer=$said answer_status=$status
    if [ "$status" = 0 ]; then
        look=
        [ "$nvlink_links" -gt 0 ] && look=yes
        if [ "$nvlink_links" -lt 0 ]; then
            case $answer in
            *SXM* | *NVL* | *HBM* | *'NVIDIA H200'* | *'NVIDIA B'[123]00* | *GB[23]00*) look=yes ;;
            esac
        fi
        if [ -n "$look" ]; then
            ask nvlink -s
            nvlink=$said nvlink_status=$status
        fi
    fi
    fact answer_status "$answer_status"
    fact answer "$answer"
    fact refused "${refused# }"
    fact nvlink_status "$nvlink_status"
    fact nvlink "$nvlink"
fi
case $driver$said in
absent | absent*'NVIDIA driver'* | absent*'Driver Not Loaded'*) ;;
*)
    uptime=
    read -r uptime _ 2>/dev/null <"$ROOT/proc/uptime"
    fact uptime "$uptime"
    read_log
    fact log_from "$log_from"
    fact log "$log"
    ;;
esac
"""
)
