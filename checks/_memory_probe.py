"""The probe of the check memory."""

from ._kernel_log import KERNEL_LOG, PICK_HEAD, PICK_TAIL

PROBE = (
    r"""
# pick: the lines of the kernel's log on processes that were ended for lack of memory
pick() {
    awk -v mark="$cc_mark" '
"""
    + PICK_HEAD
    + r"""
        /Out of memory|emory cgroup out of memory|oom-kill:constraint/ {
            total++
            kept[total % 400] = "oom " NR " " substr($0, 1, 600)
        }
        END {
            for (n = total > 400 ? total - 399 : 1; n <= total; n++) print kept[n % 400]
"""
    + PICK_TAIL
    + r"""
        }'
}
log_hours=$oom_hours
"""
    + KERNEL_LOG
    + r"""
meminfo='' total=0 available=0
while read -r key value _; do
    case $key in
    MemTotal:) total=$value ;;
    MemAvailable:) available=$value ;;
    SwapTotal: | SwapFree: | AnonPages: | Shmem: | SUnreclaim: | HardwareCorrupted:) ;;
    HugePages_Total: | HugePages_Free: | Hugepagesize: | Hugetlb:) ;;
    *) continue ;;
    esac
    meminfo="$meminfo$key$value "
done 2>/dev/null <"$ROOT/proc/meminfo"
fact meminfo "$meminfo"

# What ZFS keeps of files, in bytes; it gives back all but its minimum.
cache=0
if [ -r "$ROOT/proc/spl/kstat/zfs/arcstats" ]; then
    least=0
    while read -r key _ value; do
        case $key in
        size) cache=$value ;;
        c_min) least=$value ;;
        esac
    done <"$ROOT/proc/spl/kstat/zfs/arcstats"
    cache=$((cache - least))
    [ "$cache" -gt 0 ] || cache=0
fi
fact zfs "$cache"
available=$((available + cache / 1024))

# A job rightly takes what there is.
job=
for folder in "$ROOT"/sys/fs/cgroup/system.slice/*slurmstepd.scope/job_[0-9]* \
    "$ROOT"/sys/fs/cgroup/*/slurm*/uid_[0-9]*/job_[0-9]* \
    "$ROOT"/sys/fs/cgroup/pbs_jobs.service/jobid/[0-9]* \
    "$ROOT"/sys/fs/cgroup/*/pbs_jobs.service/jobid/[0-9]* \
    "$ROOT"/sys/fs/cgroup/lsf/*/job.* "$ROOT"/sys/fs/cgroup/*/lsf/*/job.* \
    "$ROOT"/sys/fs/cgroup/kubepods* "$ROOT"/sys/fs/cgroup/memory/kubepods*; do
    [ -d "$folder" ] && job=${folder##*/} && break
done
if [ -z "$job" ] && [ $((total / 5)) -gt "$available" ]; then
    job=$(grep -hsx -e slurmstepd -e sge_shepherd "$ROOT"/proc/[0-9]*/comm | head -n 1)
fi
fact job "$job"
pressure=
while read -r kind rest; do
    [ "$kind" = full ] && pressure=$rest
done 2>/dev/null <"$ROOT/proc/pressure/memory"
fact pressure "$pressure"

# "CONTROLLER CORRECTED UNCORRECTED SECONDS", then "dimm CONTROLLER CORRECTED UNCORRECTED LABEL"
edac=
for folder in "$ROOT"/sys/devices/system/edac/mc/mc[0-9]*; do
    ce='' ue='' since=''
    read -r ce 2>/dev/null <"$folder/ce_count" || continue
    read -r ue 2>/dev/null <"$folder/ue_count"
    read -r since 2>/dev/null <"$folder/seconds_since_reset"
    edac="$edac${folder##*/} ${ce:--} ${ue:--} ${since:--}$cc_nl"
    [ "$ce$ue" = 00 ] && continue
    for dimm in "$folder"/dimm[0-9]* "$folder"/rank[0-9]*; do
        dimm_ce='' dimm_ue='' label=''
        read -r dimm_ce 2>/dev/null <"$dimm/dimm_ce_count" || continue
        read -r dimm_ue 2>/dev/null <"$dimm/dimm_ue_count"
        read -r label 2>/dev/null <"$dimm/dimm_label"
        [ "$dimm_ce$dimm_ue" = 00 ] ||
            edac="${edac}dimm ${folder##*/} ${dimm_ce:--} ${dimm_ue:--} ${label:-${dimm##*/}}$cc_nl"
    done
done
fact edac "$edac"

# The kernel counts those that it ended since 4.13; where it ended none, its log need not be read.
killed=$(grep -s '^oom_kill ' "$ROOT/proc/vmstat")
killed=${killed#oom_kill }
fact killed "$killed"
if [ "$killed" != 0 ]; then
    uptime=
    read -r uptime _ 2>/dev/null <"$ROOT/proc/uptime"
    fact uptime "$uptime"
    read_log
    fact log_from "$log_from"
    fact log "$log"
fi
"""
)
