"""Host-side checks on what a stage says: pure, and the same whatever model said it."""
