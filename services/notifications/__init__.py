"""notifications: gives rules to the processor, lands the changes of incidents in Postgres, and notifies receivers of them."""
