# All launches of one experiment, on this machine alone: arms are compared, so nothing else may run beside them. Raw records go to results/runs
# and are no output of the rule, since Snakemake deletes outputs of a rule that failed; a second start runs only what is missing.
rule run:
    input:
        suite_files,
        costs_first,
    output:
        table="results/tables/{suite}.{experiment}.{size}.parquet",
    log:
        "logs/run/{suite}.{experiment}.{size}.log",
    conda:
        "../environment.yml"
    resources:
        machine=100,
        mpi="srun",
        nodes=asked("nodes"),
        tasks=asked("tasks"),
        tasks_per_gpu=0,
        cpus_per_task=asked("cpus_per_task"),
        gres=asked("gres"),
        constraint=asked("constraint"),
        runtime=asked("runtime"),
        slurm_extra=asked("slurm_extra"),
    params:
        code=code_digest(),
        profile=profiling,
        over=over,
    shell:
        # 1 says that a launch failed: that is part of the result and the report shows it. Anything above is a mistake or an interruption.
        "{params.profile}"
        "code=0; scaleproof run {wildcards.suite} {wildcards.experiment} --size {wildcards.size} {params.over}2>&1 | tee {log} || code=$?; "
        # 75 says that too few nodes are left: Slurm takes the job away once it misses the node itself, and begins it again without it; who ended before might be
        # given the same node.
        'if test $code -eq 75 && test -n "${{SLURM_JOB_ID:-}}"; then sleep 900; fi; '
        "test $code -le 1 || exit $code; "
        "scaleproof collect {wildcards.suite} {wildcards.experiment} --size {wildcards.size} -o {output.table} >> {log} 2>&1"
