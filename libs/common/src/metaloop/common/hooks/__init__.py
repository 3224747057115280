"""How a reconciler asks the gateway to call a webhook."""
