"""The demo of each application: what it is sent, and whether what comes out is what was sent."""
