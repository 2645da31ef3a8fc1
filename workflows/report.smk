# Pages from the existing records of a size, after the requested verdicts are up to date. No output is declared: every
# target writes the same folder, and making the pages takes seconds.
for target, (suites, size) in TARGETS.items():

    rule:
        name:
            target
        input:
            verdicts(suites, size),
            fitted(suites, size),
        log:
            f"logs/report/{target}.{size}.log",
        localrule: True
        conda:
            "../environment.yml"
        resources:
            machine=1,
            pages=1,
        params:
            size=size,
            code=digest_of("report", "claims"),
        shell:
            "scaleproof report --size {params.size} 2>&1 | tee {log}"
