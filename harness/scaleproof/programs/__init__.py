"""What every rank runs: transfer, collective, train."""
