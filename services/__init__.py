"""The services. No service imports another; the IO that they share is `services.rim`."""
