"""What a request passes before a route sees it: its id, host, origin, keys, limits; and how errors become responses."""
