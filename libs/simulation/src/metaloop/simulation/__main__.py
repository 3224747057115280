"""`python -m metaloop.simulation`: run all stories with a crash at each point, and many seeds; or repeat one run."""

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from metaloop.simulation.faultplan import CrashPoint, RandomFaults
from metaloop.simulation.more_stories import ALL_STORIES
from metaloop.simulation.run import Result, run
from metaloop.simulation.stories import STORIES

_SEED_OF_CRASHES = "1"


def run_seed(seed: int) -> Result:
    """The run of a seed: it decides the story, too."""
    story = [*ALL_STORIES.values()][seed % len(ALL_STORIES)]
    return run(story, RandomFaults(str(seed)), seed=str(seed))


def run_crash(story: str, point: int | None) -> Result:
    """The run of a story in which one process crashes at a point; none does where it is None."""
    return run(ALL_STORIES[story], CrashPoint(point), seed=_SEED_OF_CRASHES)


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments say; returns the exit status: 1 where a run showed a problem."""
    chosen = _parser().parse_args(arguments)
    if chosen.seed is not None:
        return _replay(run_seed(chosen.seed))
    if chosen.story:
        return _replay(run_crash(chosen.story, chosen.crash_point))
    record = Record(chosen.record) if chosen.record else None
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    left = [seed for seed in seeds if record is None or seed not in record.seeds]
    began = time.perf_counter()
    with ProcessPoolExecutor(chosen.workers) as pool:
        count, failed, virtual_seconds = 0, 0, 0.0
        for command, result in _all_runs(pool, seeds=left, points=chosen.points):
            count, virtual_seconds = count + 1, virtual_seconds + result.seconds
            failed += not result.is_good
            if record is not None:
                record.add(command, result)
            if not result.is_good:
                _say(f"{command}: {'; '.join(result.problems)}")
    _say_sum(count, failed, virtual_seconds, seconds=time.perf_counter() - began)
    return 1 if failed else 0


class Record:
    """A file with a line for each run: a long series of seeds goes on where it was left."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.seeds = frozenset(int(line.split()[1]) for line in lines if line.startswith("--seed "))
        """The seeds that were run."""

    def add(self, command: str, result: Result) -> None:
        """Note the outcome of a run."""
        outcome = f"PROBLEM {'; '.join(result.problems)}" if result.problems else "good"
        with self._path.open("a") as file:
            file.write(f"{command} {result.story} {result.seconds:.0f} s: {outcome}\n")


def _say_sum(count: int, failed: int, virtual_seconds: float, *, seconds: float) -> None:
    used = os.times()
    cpu_seconds = used.user + used.system + used.children_user + used.children_system
    speed = f"{virtual_seconds / seconds:.0f} x, {cpu_seconds:.0f} s of CPU"
    _say(f"{count} runs, {failed} with problems; {virtual_seconds:.0f} s of virtual time in {seconds:.0f} s ({speed})")


def _all_runs(pool: ProcessPoolExecutor, *, seeds: Iterable[int], points: bool) -> Iterator[tuple[str, Result]]:
    """Each run with the command that repeats it."""
    for story in STORIES if points else ():
        count = pool.submit(run_crash, story, None).result().points
        for point, result in enumerate(pool.map(partial(run_crash, story), range(count), chunksize=4)):
            yield f"--story {story} --crash-point {point}", result
    numbers = [*seeds]
    for seed, result in zip(numbers, pool.map(run_seed, numbers, chunksize=4), strict=True):
        yield f"--seed {seed}", result


def _replay(result: Result) -> int:
    """Show the history of one run."""
    for line in result.history.lines:
        _say(line)
    _say(f"\n{result.story}, seed {result.seed}: history {result.history.digest}, {result.seconds:.0f} s of virtual time")
    for problem in result.problems:
        _say(f"PROBLEM: {problem}")
    return 0 if result.is_good else 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m metaloop.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="repeat the run of this seed, and show its history")
    parser.add_argument("--story", choices=[*ALL_STORIES], help="repeat this story with a crash at --crash-point, and show its history")
    parser.add_argument("--crash-point", type=int, help="which write or message; without it nothing crashes")
    parser.add_argument("--seeds", type=int, default=500, help="how many seeds to run (500)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--no-points", dest="points", action="store_false", help="leave out the crash points of the stories")
    parser.add_argument("--record", type=Path, help="note each run in this file, and leave out the seeds that it names")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many runs at once (one for each core)")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
