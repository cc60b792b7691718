"""The manifests on a real control plane: `make kubernetes-test`."""
