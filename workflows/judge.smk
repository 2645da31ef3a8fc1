# Verdicts on every claim of a suite, from the records behind the tables; nothing is started.
rule judge:
    input:
        tables=tables,
        claims=claim_files,
        floors=floors_first,
    output:
        "results/claims/{suite}.{size}.json",
    log:
        "logs/judge/{suite}.{size}.log",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        machine=1,
    params:
        code=digest_of("claims", "stats", "record", "spec"),
        validated=validated,
    shell:
        "scaleproof judge {wildcards.suite} --size {wildcards.size} > {log} 2>&1"
