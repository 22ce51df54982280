"""The Helm chart, manifests and compose files of `deploy/`: what they set is what there is."""
