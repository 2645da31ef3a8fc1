# Pages from the existing records of a size, after the requested verdicts are up to date. No output is declared: every
# target writes the same folder, and making the pages takes seconds. Of several targets of one call the first by name
# waits for the verdicts of all and makes the pages, once.
for target, (suites, size) in TARGETS.items():

    rule:
        name:
            target
        input:
            partial(awaited, target),
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
            makes_pages=partial(makes_pages, target),
            size=size,
            code=digest_of("report", "claims"),
        shell:
            "test {params.makes_pages} = False || scaleproof report --size {params.size} 2>&1 | tee {log}"
