"""The work on one actor: distill, merge, maintain. Values in, values out."""
