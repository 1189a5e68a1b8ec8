"""What another rule would have elected, as far as the ballots cast tell."""
