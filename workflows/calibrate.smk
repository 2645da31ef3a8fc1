# Noise floors and bounds of this machine; no other target asks for them. Once more on a quiet machine: `snakemake calibrate --forcerun calibrate`.
rule calibrate:
    output:
        touch("logs/calibrate/done"),
    log:
        "logs/calibrate/calibrate.log",
    conda:
        "../environment.yml"
    resources:
        machine=100,
    params:
        code=code_digest(),
    shell:
        "scaleproof calibrate 2>&1 | tee {log}"
