"""The services. None imports another; what they have in common at the rim is `services.rim`."""
