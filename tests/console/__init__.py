"""The console in a browser: `make console` runs what is here, `make test` all of it but the speeds."""
