"""From a launch that has ended to its record: warnings, verification, advice."""
