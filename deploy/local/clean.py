"""Removes what local runs made outside the checkout: `python -m deploy.local.clean`."""

from deploy.local import postgres

if __name__ == "__main__":
    postgres.clean()
