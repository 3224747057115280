"""What a profile of a service says."""

from pathlib import Path

from bench.profiling import summary


def test_profile_counts_each_function_with_and_without_its_callees(tmp_path: Path) -> None:
    file = tmp_path / "watcher.raw"
    file.write_text("main (a.py:1);work (a.py:2) 3\nmain (a.py:1);work (a.py:2);work (a.py:9) 1\nmain (a.py:1) 1\n")

    lines = summary(file).splitlines()

    assert lines[0] == "watcher: 5 samples; with callees, alone"
    assert [line.split() for line in lines[1:3]] == [
        ["100.0", "%", "20.0", "%", "main", "(a.py"],
        ["80.0", "%", "80.0", "%", "work", "(a.py"],
    ]
    assert lines[4].split() == ["80.0", "%", "work", "(a.py"]
