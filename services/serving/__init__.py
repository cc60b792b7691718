"""Keeps hot rows: views in Postgres as topic `views` has them, a second after they are finished."""
