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


# The noise floors that the claims of a suite need and this machine does not have yet: from the suite's own launches,
# and from more launches where a verdict depends on them.
rule floors:
    input:
        tables,
    output:
        touch(f"results/machines/{machine_id()}/floors.{{suite}}.{{size}}"),
    log:
        "logs/floors/{suite}.{size}.log",
    # Before verdicts, of which several can then be reached at a time.
    priority: 1
    conda:
        "../environment.yml"
    resources:
        machine=100,
        mpi="srun",
        nodes=1,
        tasks=2,
        cpus_per_task=1,
        runtime=60,
        slurm_extra=f"--exclusive {ONE_BY_ONE}",
    params:
        # A calibration with other code drops the floors that earlier code measured.
        code=code_digest(),
        claims=claim_digest,
    shell:
        # Exit code 1 means that a launch failed: the claims that lack its floor say so.
        "code=0; "
        "scaleproof calibrate {wildcards.suite} --size {wildcards.size} 2>&1 | tee {log} || code=$?; "
        "test $code -le 1"
