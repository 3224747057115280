"""The bus over NATS: a job stream of JetStream, requests and messages of core NATS.

Only composition roots import it: they make a connection (`connected`) and give services their link over it, a
`NatsWorkerLink` or a `NatsWatcherLink`. Nothing else imports the NATS client library or builds a subject.
"""
