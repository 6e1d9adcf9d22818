"""The command line of onceproof. Exit status: 0 as expected, 1 not as expected, 2 bad input, 3 the harness failed,
130 interrupted.

onceproof setup [--dry-run, --no-install]   install what a run needs, or say what is missing
onceproof doctor                        say what is missing and how to get it
onceproof list [WORD]                   list scenarios, workloads, faults, checks and systems
onceproof runs                          list runs with their verdicts
onceproof run SCENARIO [--seed N] [--kafka V] [--keep]      run a scenario, print the verdict and the report's path
onceproof run FOLDER [--count N]        run all scenarios of a folder on shared clusters, and write a summary page
onceproof check FILE…                   say whether scenarios can be run, without a cluster
onceproof matrix SCENARIO… --kafka V,V --client C,C     run all combinations and print one table
onceproof soak [--count N] [--seed S]   run many plans with random faults and summarise them
onceproof bench verify [--records N]    measure how long a verdict takes, compared with other readers of the topics
onceproof bench wire                    measure what the request proxy costs a pipeline
onceproof bench transactions            measure what transactions cost a producer and a reader
onceproof bench copy                    measure how fast our workers and others copy a topic in transactions
onceproof verify RUN                    judge a run's folder again
onceproof report RUN                    write a run's report again
onceproof replay RUN                    repeat the plan of a run, and say how often it fails again
onceproof shrink RUN                    find the smallest plan that fails as a run did
onceproof diff RUN RUN                  compare two runs
onceproof serve [FOLDER]                show runs and their reports in a browser
onceproof analysis FOLDER               write an analysis of the runs in a folder
onceproof spark up | down               start or stop a Spark cluster in containers, for --spark-master
onceproof trace RUN --input N           tell the story of one record (or --output, --key, --transactional-id)
onceproof audit PATH…                   judge transactions from copied log directories (or --run RUN: from a run's logs)
onceproof images [V]                    build the images that `docker compose up` needs
onceproof clean [--all] [--dry-run]     remove what interrupted or kept runs left behind, or everything
onceproof completion SHELL              print a script that completes commands in bash, zsh or fish
"""

import sys

from onceproof.cli import early


def main(arguments: list[str] | tuple[str, ...] | None = None) -> int:
    """Run a command and return its exit status, which the console script passes to the system."""
    early.listen()
    early.open_streams()
    # Imported here, since it takes a second, in which the command must end in order when it is interrupted.
    from onceproof.cli.dispatch import dispatch

    return dispatch(arguments)


if __name__ == "__main__":
    sys.exit(main())
