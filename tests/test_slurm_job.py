"""What a job does with its own nodes, on a real cluster."""

from tests.slurm_cluster import NODES, SlurmCluster


def test_the_cluster_runs_jobs_of_both_users(slurm: SlurmCluster) -> None:
    for user in ("", slurm.user):
        job = slurm.sbatch("srun printenv SLURMD_NODENAME", f"-N{len(NODES)}", user=user)
        assert slurm.wait(job) == "COMPLETED", slurm.output(job)
        assert sorted(slurm.output(job).split()) == sorted(NODES)
