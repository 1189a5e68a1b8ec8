"""What a run's votes and outcomes show. Definitions stand in each module's text.

Vote metrics take any `Source`, also ballots from elsewhere; outcomes need a run's episodes.
They are statements about single logged turns and hold the logged dialogue fixed."""
