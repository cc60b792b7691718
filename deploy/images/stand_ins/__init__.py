"""Images that stand in for third-party ones: `deploy.images.local_images`."""
