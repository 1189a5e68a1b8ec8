"""What every study has, whatever its system: flows, scenes, study files, plans. Names no system."""
