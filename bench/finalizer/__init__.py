"""What the finalizer costs."""
