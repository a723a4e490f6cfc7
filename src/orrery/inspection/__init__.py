"""What a forward computes: the recorder, traces and their checks, attribution, interventions."""
