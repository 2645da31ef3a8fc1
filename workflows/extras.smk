# What only some suites need (suites/SUITE/extras.toml) is installed before the first job, where launches of such a suite
# are to run. If that fails, the workflow continues: cases that need it are `not runnable here`.
import subprocess

from snakemake.settings.types import DeploymentMethod


def suites_to_run():
    """Suites of which this call runs an experiment, sorted."""
    jobs = [
        job
        for job in workflow.dag.needrun_jobs()
        if job.rule.name in ("run", "run_before")
    ]
    return sorted({job.wildcards.suite for job in jobs})


onstart:
    # Jobs in environments that Snakemake makes do not see `.venv`.
    methods = workflow.deployment_settings.deployment_method
    for suite in [] if DeploymentMethod.CONDA in methods else suites_to_run():
        if not (SUITES[suite].folder / "extras.toml").exists():
            continue
        argv = [sys.executable, "-m", "tools.setup", "extras", "--only", suite]
        if subprocess.run(argv).returncode:
            print(
                f"{suite} runs without these packages: cases that need them are `not runnable here`",
                file=sys.stderr,
            )
