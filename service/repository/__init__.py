"""The models: their files, how they are loaded, proved and warmed up, and which of them are served."""
