# alpha, beta, gamma and the time of a call of every transport from the ping-pongs and all-reduces of suite micro, times
# of cores from its windows of messages, and jitter from its trainings; nothing is started. What was fitted is one file
# for this machine, which a smaller size never replaces; the declared output only marks that it exists.
rule fit:
    input:
        "results/tables/micro.{what}.{size}.parquet",
    output:
        touch(fitted_to("{size}")),
    log:
        "logs/fit/{what}.{size}.log",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        machine=1,
    params:
        code=digest_of("simulate", "calibrate", "claims"),
    shell:
        # Exit code 1: no training here shows jitter, as on a machine without a core for each rank. Cases that draw from
        # it are recorded as not runnable then.
        "code=0; "
        "scaleproof fit micro {wildcards.what} --size {wildcards.size} > {log} 2>&1 || code=$?; "
        "test $code -le 1"
