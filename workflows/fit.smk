# alpha, beta and gamma of every transport, from the ping-pongs and all-reduces of suite micro; nothing is started. The
# costs themselves are one file for this machine, which a smaller size never replaces; the declared output only marks
# that they exist.
rule fit:
    input:
        "results/tables/micro.costs.{size}.parquet",
    output:
        touch(fitted_to("{size}")),
    log:
        "logs/fit/costs.{size}.log",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        machine=1,
    params:
        code=digest_of("simulate", "calibrate", "claims"),
    shell:
        "scaleproof fit micro costs --size {wildcards.size} > {log} 2>&1"
