"""What the server reports about itself: logs, statistics, metrics, recent runs, spans."""
