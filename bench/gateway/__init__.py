"""What the gateway's scenario runs: a load that calls the gateway over HTTP, and a webhook behind it."""
