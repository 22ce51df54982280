"""What the server tells of itself: logs, statistics, metrics, recent runs, spans."""
