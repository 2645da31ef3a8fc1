# alpha, beta and gamma of every transport, from the ping-pongs and all-reduces of suite micro; nothing is started. One file for this machine, whatever the size.
rule fit:
    input:
        f"results/tables/micro.costs.{SIZE}.parquet",
    output:
        COSTS,
    log:
        f"logs/fit/costs.{SIZE}.log",
    conda:
        "../environment.yml"
    params:
        size=SIZE,
        code=digest_of("simulate", "calibrate", "claims"),
    shell:
        "scaleproof fit micro costs --size {params.size} > {log} 2>&1"
