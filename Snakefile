# The stages of the data flow. `snakemake` makes the report of all suites at size smoke; `snakemake das2016` only that
# suite's part; `snakemake calibrate` measures this machine's noise floors and bounds;
# `snakemake --config size=ci|smoke|small|full` selects another size; `snakemake -n` shows what would run.
# Settings: profiles/default/.
from snakemake.utils import min_version

min_version("9.27")


include: "workflows/common.smk"
include: "workflows/extras.smk"
include: "workflows/calibrate.smk"
include: "workflows/run.smk"
include: "workflows/judge.smk"
include: "workflows/fit.smk"
include: "workflows/report.smk"


rule all:
    default_target: True
    input:
        verdicts(list(SUITES), SIZE),
        fitted(list(SUITES), SIZE),
    log:
        f"logs/report/all.{SIZE}.log",
    localrule: True
    conda:
        "environment.yml"
    resources:
        machine=1,
        pages=1,
    params:
        size=SIZE,
        code=digest_of("report", "claims"),
    shell:
        "scaleproof report --size {params.size} 2>&1 | tee {log}"
