"""snakemake-executor-plugin-kubernetes for a clone on a volume that every pod mounts at the same path.

That plugin assumes that pods share no files and hands declared inputs and outputs through a storage provider; our raw
records are neither. So it runs each job in the clone itself. Set-up links this folder into `.venv`,
where Snakemake finds executors by name.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

import snakemake_executor_plugin_kubernetes as upstream
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

ExecutorSettings = upstream.ExecutorSettings
common_settings = replace(
    upstream.common_settings,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    auto_deploy_default_storage_provider=False,
)


class Executor(upstream.Executor):
    """A pod a job, in the folder where Snakemake was started."""

    def __post_init__(self) -> None:
        """WorkflowError where a pod would ask for less of a node than the profile says, and so share it:
        profiles/default counts this machine's cores."""
        settings = self.workflow.resource_settings
        most = max((int(threads.value) for threads in settings.overwrite_threads.values()), default=0)
        if settings.cores is not None and most > settings.cores:
            raise WorkflowError(
                f"profiles/default cuts pods of {most} cores down to this machine's {settings.cores}; "
                "type --workflow-profile, not --profile"
            )
        super().__post_init__()

    def get_job_exec_prefix(self, job: JobExecutorInterface) -> str:
        """Pods begin in an empty folder."""
        return f"cd {shlex.quote(str(self.workflow.workdir_init))}"
