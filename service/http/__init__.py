"""What a request passes before a route sees it: its id, keys, CORS, limits on bodies; and how errors are answered."""
