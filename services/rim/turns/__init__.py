"""Who is next, and how many at a time: limits of what parties such as callers, organisations and addresses have under way."""
