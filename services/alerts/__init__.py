"""alerts: rules for the experience of viewers, the incidents that they find, and the receivers of notifications."""
