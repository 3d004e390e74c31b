# shellcheck shell=sh
# In a job's script, before its first srun. Ask for some nodes more than the job needs:
#
#     #SBATCH --nodes=5
#     CC_NEED=4
#     . /opt/clustercheck/integrations/slurm/preamble.sh
#     srun ./benchmark
#
# The job's nodes are checked by a step of the job. It then keeps exactly CC_NEED that are fit, gives
# the others back, and goes on; with too few it ends with the gate's exit code (1 no-go, 75 not
# known). Where the batch host itself is not fit, or too few nodes are, the job is requeued without
# those that failed, CC_REQUEUE times at most; Slurm starts it again two minutes later. CC_GATE holds
# further words for the gate, such as "--profile benchmark".
#
# After it CC_NODELIST, CC_NNODES, CC_EXCLUDE and CC_VERDICT_ID are set.
cc_words=${CC_GATE-}
# shellcheck disable=SC2086 # a word each
cc_said=$("${CLUSTERCHECK:-clustercheck}" gate --via srun --shrink --requeue "${CC_REQUEUE:-1}" \
    --need "${CC_NEED:?set CC_NEED to the number of nodes that the job needs}" \
    $cc_words --format env) || exit $?
eval "$cc_said"
