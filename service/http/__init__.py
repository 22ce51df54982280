"""What every request goes through before a route sees it: identity, limits, access, bodies, errors."""
