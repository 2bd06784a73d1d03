"""Where the time goes in a region: profiler files in, a Profile record out, targets ranked by what can be won back."""
