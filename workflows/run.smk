# All launches of one campaign of an experiment, in one call of `scaleproof run`. Arms are compared, so nothing else may
# run on the machine meanwhile, unless suite.yaml says `timed: false` or all launches are predictions: two such
# experiments run at a time. Raw records are written to results/runs and are no output of the rule, since Snakemake
# deletes outputs of a failed rule; a second start runs only the missing launches. The last campaign makes the table of
# all, after the earlier ones, which are jobs of their own.
rule run:
    input:
        suite_files,
        fits_first,
        earlier_campaign,
    output:
        table="results/tables/{suite}.{experiment}.{size}.parquet",
    log:
        "logs/run/{suite}.{experiment}.{size}.log",
    priority: longest_first
    conda:
        "../environment.yml"
    resources:
        machine=share_of_machine,
        mpi="srun",
        nodes=requested("nodes"),
        tasks=requested("tasks"),
        tasks_per_gpu=0,
        cpus_per_task=requested("cpus_per_task"),
        gres=requested("gres"),
        constraint=requested("constraint"),
        runtime=requested("runtime"),
        slurm_extra=requested("slurm_extra"),
    params:
        code=code_digest(),
        profile=profiling,
        over=over,
        campaign=campaign_option,
        # In the same process: another would import and read all of it again.
        table="--table results/tables/{suite}.{experiment}.{size}.parquet ",
        then="test -e",
    shell:
        # Exit code 1 means that a launch failed: that is part of the result, and the report shows it. Higher codes are
        # errors or interruptions.
        "{params.profile}"
        "code=0; "
        "scaleproof run {wildcards.suite} {wildcards.experiment} --size {wildcards.size} "
        "{params.campaign}{params.over}{params.table}2>&1 | tee {log} || code=$?; "
        # Exit code 75 means that too few nodes are left: once Slurm notices the lost node, it requeues the job without
        # it. A job that ended earlier could get the same node again.
        'if test $code -eq 75 && test -n "${{SLURM_JOB_ID:-}}"; then sleep 900; fi; '
        "test $code -le 1 || exit $code; "
        "{params.then} {output}"


# A campaign before the last one: its output says that it ended.
use rule run as run_before with:
    output:
        "results/campaigns/{suite}.{experiment}.{size}.{campaign}",
    log:
        "logs/run/{suite}.{experiment}.{size}.{campaign}.log",
    params:
        code=code_digest(),
        profile=profiling,
        over=over,
        campaign=campaign_option,
        table="",
        then="touch",
