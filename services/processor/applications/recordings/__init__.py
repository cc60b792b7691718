"""recordings: joins the chunks of session recordings in strict order, and stores the payloads as objects."""
