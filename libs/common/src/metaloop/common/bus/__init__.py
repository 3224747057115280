"""The bus between watchers and workers, and what it promises them.

Each end is a protocol: a worker holds a `WorkerLink`, a watcher a `WatcherLink`. Both see only values and these
promises:

- **Jobs arrive at least once.** A job that is queued is delivered until a worker finishes it. It comes again when it is
  given back, or when its worker says nothing of it for `ack_wait`. If the stream itself is lost, so are its jobs: the
  watcher, which knows them all, offers them again.
- **One message per key.** From the moment when a job is queued until it is finished, a second job of its key is
  refused.
- **Requests end.** A claim, a renewal and a question for related objects end with a reply, or with `Unavailable` within
  a bounded time.
- **Receipts come from the server.** A watcher is told that a job is finished once the stream no longer holds it: what
  it offers from then on is not refused because of that job.
- **The rest may be lost.** Reports, receipts, outcomes of offers and announcements arrive at most once. Two messages
  may arrive in another order than they were sent.
- **Connections come back by themselves.** A link never gives up; while it is disconnected, its calls raise
  `Unavailable` or are kept until it is connected again, as each says.

The only errors are `Unavailable`, and its subclasses `NobodyThere` where nobody listens, and `OtherCluster` where the
jobs are those of another cluster. A call that is cancelled may or may not have been sent.
"""
