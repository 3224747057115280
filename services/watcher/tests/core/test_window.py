from metaloop.watcher.core.window import Window


def test_it_lets_a_few_jobs_out_before_any_worker_spoke():
    assert Window().size == 8


def test_it_grows_with_free_slots_up_to_a_bound():
    window = Window()
    window.set_slots("a", 4, now=0.0)
    small = window.size
    window.set_slots("b", 1000, now=0.0)

    assert (small, window.size) == (12, 32)


def test_what_a_worker_says_replaces_what_it_said():
    window = Window()
    window.set_slots("a", 10, now=0.0)
    window.set_slots("a", 3, now=1.0)

    assert window.size == 11


def test_silent_workers_are_not_counted_on():
    window = Window()
    window.set_slots("dead", 10, now=0.0)
    window.set_slots("alive", 2, now=9.0)

    window.forget_silent(since=5.0)

    assert (window.size, window.workers) == (10, 1)
