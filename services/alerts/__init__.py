"""alerts: rules that viewers' experience is held against, the incidents that they find, and who is notified."""
