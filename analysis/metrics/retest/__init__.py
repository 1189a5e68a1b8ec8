"""What asking the same vote again says about noise."""
