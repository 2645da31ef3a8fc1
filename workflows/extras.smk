# What only some suites need (suites/SUITE/extras.toml) is installed before the first job, where launches of such a
# suite are to run. If that fails, the workflow continues: cases that need it are `not runnable here`.
onstart:
    for suite in suites_with_extras_to_run():
        argv = [sys.executable, "-m", "tools.setup", "extras", "--only", suite]
        if subprocess.run(argv).returncode:
            print(
                f"{suite} runs without these packages: cases that need them are `not runnable here`",
                file=sys.stderr,
            )
