# Noise floors and bounds of this machine; no other target requests them. To repeat it on a quiet machine:
# `snakemake calibrate --forcerun calibrate`.
rule calibrate:
    output:
        touch("logs/calibrate/done"),
    log:
        "logs/calibrate/calibrate.log",
    conda:
        "../environment.yml"
    resources:
        machine=100,
        # On a cluster: one whole node.
        mpi="srun",
        nodes=1,
        tasks=2,
        cpus_per_task=1,
        runtime=30,
        slurm_extra=f"--exclusive {ONE_BY_ONE}",
    params:
        code=code_digest(),
    shell:
        "scaleproof calibrate 2>&1 | tee {log}"
